"""Makes songs with the package `openai`, as its documentation shows it, and prints what the package read."""

import base64
import json
import sys

from openai import BadRequestError, OpenAI

client = OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0)
model = client.models.list().data[0].id


def ask(**more):
    return client.chat.completions.create(
        model=model,
        modalities=["text", "audio"],
        messages=[{"role": "user", "content": "<prompt>a waltz</prompt><lyrics>[Verse]\nRain again</lyrics>"}],
        seed=42,
        extra_body={"audio_config": {"duration": 10}, "inference_steps": 1},
        **more,
    )


def size(audio):
    return {"begin": base64.b64decode(audio.data)[:4].hex(), "bytes": len(base64.b64decode(audio.data))}


formats = {}
for name in ["wav", "mp3", "flac", "opus", "pcm16"]:
    message = ask(audio={"voice": "alloy", "format": name}).choices[0].message
    formats[name] = size(message.audio)
several = ask(audio={"voice": "alloy", "format": "wav"}, n=2)
streamed = [chunk.choices[0] for chunk in ask(audio={"voice": "alloy", "format": "pcm16"}, stream=True)]
audio = [choice.delta.audio for choice in streamed if getattr(choice.delta, "audio", None)]
try:
    ask(audio={"voice": "alloy", "format": "vinyl"})
    refusal = None
except BadRequestError as error:
    refusal = error.message
print(
    json.dumps(
        {
            "model": model,
            "formats": formats,
            "transcript": message.audio.transcript,
            "id": message.audio.id,
            "several": [size(choice.message.audio)["bytes"] for choice in several.choices],
            "streamed": sum(len(base64.b64decode(part["data"])) for part in audio),
            "end": streamed[-1].finish_reason,
            "refusal": refusal,
        }
    )
)
