#include "pretraining/pieces.h"

#include <fstream>

#include "core/checkpoint/json.h"
#include "core/runtime/error.h"

namespace carillon::pretraining {
namespace {

Request read_request(const Json& json) {
  return {json.get_ints("textTokenIds"), json.get_ints("bareTextTokenIds"), json.get_ints("lyricTokenIds"),
          json.get_ints("lmPromptTokenIds"), json.get_ints("lmThinkTokenIds")};
}

std::map<std::string, TokenIds> read_tasks(const Json& tasks) {
  std::map<std::string, TokenIds> texts;
  for (const char* name : {"cover", "repaint"}) texts[name] = tasks.get_ints(name);
  for (const char* name : {"extract", "lego", "complete"}) {
    const Json& by_track = tasks.at(name);
    for (const auto& [track, ids] : by_track.as_object()) texts[name + (" " + track)] = by_track.get_ints(track);
  }
  return texts;
}

/// Throws kBadCheckpoint, naming the piece.
Facts read_facts_of(const Json& line, const std::string& directory) {
  try {
    return facts_of(line.at("genre").as_string(), line.get_double("bpm"), line.at("keyScale").as_string(),
                    line.at("timeSignature").as_string());
  } catch (const Error& error) {
    fail(ErrorCode::kBadCheckpoint, directory + ", " + line.at("id").as_string() + ": " + error.what());
  }
}

Piece read_piece(const Json& line, const std::string& directory) {
  Piece piece;
  piece.id = line.at("id").as_string();
  piece.facts = read_facts_of(line, directory);
  piece.mix = directory + "/" + line.at("mix").as_string();
  for (const auto& [track, path] : line.at("stems").as_object()) {
    piece.stems[track] = directory + "/" + path.as_string();
  }
  piece.requests.push_back(read_request(line));
  for (const Json& variant : line.at("variants").as_array()) piece.requests.push_back(read_request(variant));
  piece.task_texts = read_tasks(line.at("tasks"));
  return piece;
}

Pieces read_lines(const std::string& directory, const std::string& name) {
  const std::string path = directory + "/" + name;
  std::ifstream file(path);
  if (!file) fail(ErrorCode::kBadCheckpoint, path + ": cannot be read; make the data set first");
  Pieces pieces;
  int64_t number = 0;
  for (std::string text; std::getline(file, text);) {
    const Json line = Json::parse(text, path + " (line " + std::to_string(++number) + ")");
    auto& split = line.at("split").as_string() == "train" ? pieces.train : pieces.held_out;
    split.push_back(read_piece(line, directory));
  }
  if (pieces.train.empty() || pieces.held_out.empty()) {
    fail(ErrorCode::kBadCheckpoint, path + ": needs pieces of both splits, train and heldout");
  }
  const Json genres = Json::read_file(directory + "/genres.json");
  for (const Json& genre : genres.as_array()) pieces.genres.push_back(genre.as_string());
  return pieces;
}

}  // namespace

Pieces Pieces::read(const std::string& directory) { return read_lines(directory, "pieces.jsonl"); }
Pieces Pieces::read_words(const std::string& directory) { return read_lines(directory, "words.jsonl"); }

}  // namespace carillon::pretraining
