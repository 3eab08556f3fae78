{
  # The thin door for tools that expect node-gyp: the build itself is CMakeLists.txt.
  "targets": [
    {
      "target_name": "carillon",
      "type": "none",
      "actions": [
        {
          "action_name": "cmake",
          "inputs": ["CMakeLists.txt"],
          "outputs": ["build/Release/carillon.node"],
          "action": ["node", "scripts/setup/native.mjs"],
        }
      ],
    }
  ]
}
