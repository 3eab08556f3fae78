"""A build of acestep.cpp: its programs, and conversion of checkpoints with its script.

    acestep_cpp.py DIR    exits with 1 and says what is missing: programs in DIR/build, or Python packages
"""

import importlib.util
import json
import pathlib
import sys

HOW_TO_BUILD = """To build acestep.cpp, put public ggml (of about August 2026) into its folder ggml:
  git clone https://github.com/ServeurpersoCom/acestep.cpp DIR
  git clone https://github.com/ggml-org/ggml DIR/ggml
  cmake -S DIR -B DIR/build -DGGML_NATIVE=ON -DGGML_BLAS=OFF && cmake --build DIR/build"""


def build_of(peer):
    """Returns the absolute path of a clone with a build. Exits if there is none."""
    programs = ["ace-synth", "ace-lm", "neural-codec", "quantize"]
    missing = [name for name in programs if not (peer / "build" / name).exists()]
    if missing:
        sys.exit(f"--peer: {peer}/build lacks {', '.join(missing)}.\n{HOW_TO_BUILD}")
    return peer.resolve()


def load_converter(peer):
    """The module convert.py of acestep.cpp."""
    try:
        specification = importlib.util.spec_from_file_location("acestep_cpp_convert", peer / "convert.py")
        converter = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(converter)
    except ModuleNotFoundError as error:
        sys.exit(f"{error}: CARILLON_PEER_PYTHON must name an interpreter with gguf and numpy")
    return converter


def write_vocabulary(directory, tokens, merges):
    """Writes the files that the converter reads: tokens in order of their ids, merges as pairs."""
    (directory / "vocab.json").write_text(json.dumps({token: index for index, token in enumerate(tokens)}))
    (directory / "merges.txt").write_text("".join(f"{first} {second}\n" for first, second in merges))


if __name__ == "__main__":
    load_converter(build_of(pathlib.Path(sys.argv[1])))
