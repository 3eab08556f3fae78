import { delimiter, resolve } from "node:path";
import { expect } from "chai";
import fc from "fast-check";
import { ignoredSettings, loadConfig, renderConfigTable } from "../src/config.js";
import { ConfigError } from "../src/system/config-error.js";
import { thrownBy } from "./failures.js";

const refusal = (environment: Record<string, string>): ConfigError => {
  const error = thrownBy(() => loadConfig(environment));
  expect(error).to.be.instanceOf(ConfigError);
  return error as ConfigError;
};

describe("loading of the configuration", () => {
  it("the configuration has the documented defaults", () => {
    expect(loadConfig({})).to.include({
      apiHost: "127.0.0.1",
      apiPort: 8001,
      apiKey: "",
      slot1Model: "acestep-v15-turbo",
      slot2Model: null,
      slot3Model: null,
      useFlashAttention: true,
      offloadToCpu: false,
      offloadDitToCpu: false,
      initLanguageModel: "auto",
      languageModel: "acestep-5Hz-lm-0.6B",
      languageModelDevice: "auto",
      offloadLanguageModelToCpu: false,
      queueMaxSize: 200,
      queueWorkers: 1,
      averageJobSeconds: 5,
      averageWindow: 50,
      temporaryDirectory: resolve(".cache/carillon/tmp"),
      checkpointsDirectory: resolve(".cache/carillon/checkpoints"),
      rangePolicy: "clamp",
      libtorch: null,
      cityPort: 32123,
      cityGameUrl: null,
    });
  });

  it("warns about settings without effect, also under their older names", () => {
    const warnings = ignoredSettings({ SVC_API_WORKERS: "4", ACESTEP_LM_BACKEND: "pt", SVC_API_PORT: "1" });
    expect(warnings).to.have.length(2);
    expect(warnings[0]).to.include("SVC_API_WORKERS was ignored: one process serves all requests");
    expect(warnings[1]).to.include("SVC_LM_BACKEND was ignored");
    expect(ignoredSettings({ SVC_LM_BACKEND: " " })).to.deep.equal([]);
  });

  it("SVC_ADAPTERS is an optional directory", () => {
    expect(loadConfig({}).adaptersDirectory).to.equal(null);
    expect(loadConfig({ SVC_ADAPTERS: "more/adapters" }).adaptersDirectory).to.equal(
      resolve("more/adapters"),
    );
  });

  it("the configuration is read-only", () => {
    const config = loadConfig({});
    expect(() => Object.assign(config, { apiPort: 1 })).to.throw(TypeError);
  });

  for (const word of ["1", "true", "YES", "y", "On", " true "]) {
    it(`reads ${JSON.stringify(word)} as true`, () => {
      expect(loadConfig({ SVC_OFFLOAD_TO_CPU: word }).offloadToCpu).to.equal(true);
    });
  }

  it("reads 0, false, no, n and off as false", () => {
    for (const word of ["0", "false", "No", "n", "off"]) {
      expect(loadConfig({ SVC_USE_FLASH_ATTENTION: word }).useFlashAttention).to.equal(false);
    }
  });

  it("reads the idle time of models in minutes; the default depends on the device", () => {
    expect(loadConfig({}).modelIdleSeconds).to.equal(null);
    expect(loadConfig({ SVC_MODEL_IDLE_MINUTES: "Auto" }).modelIdleSeconds).to.equal(null);
    expect(loadConfig({ SVC_MODEL_IDLE_MINUTES: "0" }).modelIdleSeconds).to.equal(0);
    expect(loadConfig({ SVC_MODEL_IDLE_MINUTES: "2.5" }).modelIdleSeconds).to.equal(150);
    expect(refusal({ SVC_MODEL_IDLE_MINUTES: "-1" }).message).to.include("SVC_MODEL_IDLE_MINUTES");
  });

  it("reads the maximum number of songs planned at once; by default memory limits it", () => {
    expect(loadConfig({}).batchMax).to.equal(null);
    expect(loadConfig({ SVC_BATCH_MAX: "3" }).batchMax).to.equal(3);
    for (const wrong of ["0", "9", "many", "1.5"])
      expect(refusal({ SVC_BATCH_MAX: wrong }).message).to.match(
        /SVC_BATCH_MAX.*auto or a whole number from 1 to 8/,
      );
  });

  it("reads SVC_DETERMINISTIC, which is off by default", () => {
    expect(loadConfig({}).deterministic).to.equal(false);
    expect(loadConfig({ SVC_DETERMINISTIC: "true" }).deterministic).to.equal(true);
  });

  it("treats blank variables as unset", () => {
    expect(loadConfig({ SVC_API_PORT: "", SVC_CONFIG_PATH2: "  ", SVC_API_KEY: " " })).to.deep.equal(
      loadConfig({}),
    );
  });

  it("reads a variable with the prefix ACESTEP_ if the one with SVC_ is unset", () => {
    expect(loadConfig({ ACESTEP_API_PORT: "9000" }).apiPort).to.equal(9000);
    expect(loadConfig({ ACESTEP_API_PORT: "9000", SVC_API_PORT: "9001" }).apiPort).to.equal(9001);
    expect(refusal({ ACESTEP_API_PORT: "x" }).variable).to.equal("ACESTEP_API_PORT");
  });

  it("runs the language model on SVC_DEVICE by default", () => {
    expect(loadConfig({}).devices).to.deep.equal(["auto"]);
    expect(loadConfig({ SVC_DEVICE: "CUDA:1, cuda:0" }).devices).to.deep.equal(["cuda:1", "cuda:0"]);
    expect(() => loadConfig({ SVC_DEVICE: "cuda:0,gpu" })).to.throw(
      /SVC_DEVICE.*must be auto, cpu, cuda or cuda:N/,
    );
    expect(loadConfig({ SVC_DEVICE: "cuda:1" }).languageModelDevice).to.equal("cuda:1");
    expect(loadConfig({ SVC_DEVICE: "cuda:1", SVC_LM_DEVICE: "CPU" }).languageModelDevice).to.equal("cpu");
  });

  it("allows any audio path only if no other machine can send requests", () => {
    for (const host of ["127.0.0.1", "127.8.8.8", "localhost", "::1"]) {
      expect(loadConfig({ SVC_API_HOST: host }).audioRoots, host).to.equal(null);
    }
    expect(loadConfig({}).audioRoots).to.equal(null);
    for (const host of ["0.0.0.0", "::", "192.168.1.4", "music.example", "127.0.0.1.example"]) {
      expect(loadConfig({ SVC_API_HOST: host }).audioRoots, host).to.deep.equal([]);
    }
    for (const host of ["127.0.0.1", "0.0.0.0"]) {
      const { audioRoots } = loadConfig({ SVC_API_HOST: host, SVC_AUDIO_ROOTS: "/srv/a" });
      expect(audioRoots).to.deep.equal(["/srv/a"]);
    }
  });

  it("keeps a server's data in SVC_HOME by default", () => {
    const home = loadConfig({ SVC_HOME: "two" });
    expect(home.temporaryDirectory).to.equal(resolve("two/tmp"));
    expect(home.citySavesDirectory).to.equal(resolve("two/saves"));
    expect(home.checkpointsDirectory).to.equal(loadConfig({}).checkpointsDirectory);
    const configured = loadConfig({ SVC_HOME: "two", SVC_TMPDIR: "/elsewhere" });
    expect(configured.temporaryDirectory).to.equal("/elsewhere");
    expect(configured.citySavesDirectory).to.equal(resolve("two/saves"));
  });

  it("reads SVC_UMASK as octal digits", () => {
    expect(loadConfig({}).umask).to.equal(0o077);
    expect(loadConfig({ SVC_UMASK: "0027" }).umask).to.equal(0o027);
    for (const value of ["78", "0x3f", "99", "-077", "1777"]) {
      expect(() => loadConfig({ SVC_UMASK: value })).to.throw(/SVC_UMASK must be three octal digits/);
    }
  });

  it("reads SVC_INIT_LLM as auto, on or off", () => {
    const read = (value: string) => loadConfig({ SVC_INIT_LLM: value }).initLanguageModel;
    expect(["auto", "AUTO", "", "true", "1", "false", "no"].map(read)).to.deep.equal([
      "auto",
      "auto",
      "auto",
      "on",
      "on",
      "off",
      "off",
    ]);
  });

  it("reads settings that are lists, sizes or ages", () => {
    const config = loadConfig({
      SVC_ALLOWED_ORIGINS: "https://a.example, https://b.example,",
      SVC_AUDIO_ROOTS: ["/srv/a", "relative"].join(delimiter),
      SVC_UPLOAD_MAX_MB: "0.5",
      SVC_AUDIO_MAX_AGE_HOURS: "2",
    });
    expect(config.allowedOrigins).to.deep.equal(["https://a.example", "https://b.example"]);
    expect(config.audioRoots).to.deep.equal([resolve("/srv/a"), resolve("relative")]);
    expect(config.uploadMaxBytes).to.equal(524_288);
    expect(config.audioMaxAgeSeconds).to.equal(7200);
  });

  it("strips the port from an allowed host, and the path from an allowed origin", () => {
    const config = loadConfig({
      SVC_ALLOWED_HOSTS: "Host.Docker.Internal:8001, fd00::1, [fd00::2]:80, *",
      SVC_ALLOWED_ORIGINS:
        "http://192.168.1.5:3000/, https://Studio.Example/page, tauri://localhost, null, *",
    });
    expect(config.allowedHosts).to.deep.equal(["host.docker.internal", "[fd00::1]", "[fd00::2]", "*"]);
    expect(config.allowedOrigins).to.deep.equal([
      "http://192.168.1.5:3000",
      "https://studio.example",
      "tauri://localhost",
      "null",
      "*",
    ]);
  });

  it("the default configuration trusts no other web page and no other host name", () => {
    expect(loadConfig({})).to.deep.include({ allowedOrigins: [], allowedHosts: [], allowsNoKey: false });
    const none = loadConfig({ SVC_ALLOWED_ORIGINS: "none", SVC_ALLOWED_HOSTS: "none" });
    expect(none).to.deep.include({ allowedOrigins: [], allowedHosts: [] });
  });

  const bad: [string, string][] = [
    ["SVC_API_PORT", "65536"],
    ["SVC_API_PORT", "-1"],
    ["SVC_API_PORT", "80.5"],
    ["SVC_API_PORT", "0x50"],
    ["SVC_ALLOWED_HOSTS", "http://music.example"],
    ["SVC_ALLOWED_ORIGINS", "192.168.1.5"],
    ["SVC_QUEUE_MAXSIZE", "many"],
    ["SVC_QUEUE_WORKERS", "0"],
    ["SVC_AVG_WINDOW", "0"],
    ["SVC_AVG_JOB_SECONDS", "NaN"],
    ["SVC_DEVICE", "gpu"],
    ["SVC_LM_DEVICE", "cuda:x"],
    ["SVC_INIT_LLM", "maybe"],
    ["SVC_OFFLOAD_TO_CPU", "perhaps"],
    ["SVC_RANGE_POLICY", "ignore"],
    ["SVC_UPLOAD_MAX_MB", "-5"],
    ["CITY_GAME_URL", "not a url"],
    ["CITY_BRIDGE_PORT", "99999"],
  ];
  for (const [variable, value] of bad) {
    it(`rejects ${variable}=${value} with a message that names both`, () => {
      const error = refusal({ [variable]: value });
      expect(error.variable).to.equal(variable);
      expect(error.message).to.include(variable).and.to.include(`"${value}"`);
    });
  }

  it("loadConfig accepts random values, or throws an error that names the variable", () => {
    const names = [...renderConfigTable().matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name as string);
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), fc.string()), (environment) => {
        try {
          loadConfig(environment);
        } catch (error) {
          expect(error).to.be.instanceOf(ConfigError);
          expect(names).to.include((error as ConfigError).variable);
        }
      }),
    );
  });

  describe("generation of the settings table", () => {
    const table = renderConfigTable();

    it("the settings table lists every variable once", () => {
      const names = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name);
      expect(new Set(names).size).to.equal(names.length);
      expect(names).to.include.members([
        ...["SVC_API_HOST", "SVC_API_PORT", "SVC_API_KEY", "SVC_API_WORKERS", "SVC_CONFIG_PATH"],
        ...["SVC_CONFIG_PATH2", "SVC_CONFIG_PATH3", "SVC_DEVICE", "SVC_USE_FLASH_ATTENTION"],
        ...["SVC_OFFLOAD_TO_CPU", "SVC_OFFLOAD_DIT_TO_CPU", "SVC_INIT_LLM", "SVC_LM_MODEL_PATH"],
        ...["SVC_LM_BACKEND", "SVC_LM_DEVICE", "SVC_LM_OFFLOAD_TO_CPU", "SVC_QUEUE_MAXSIZE"],
        ...["SVC_QUEUE_WORKERS", "SVC_AVG_JOB_SECONDS", "SVC_AVG_WINDOW", "SVC_TMPDIR"],
        ...["SVC_CHECKPOINTS", "SVC_AUDIO_ROOTS", "SVC_RANGE_POLICY", "LIBTORCH"],
        ...["CITY_BRIDGE_PORT", "CITY_GAME_URL", "CITY_SAVES_DIR"],
      ]);
    });

    it("the settings table shows the real defaults", () => {
      const environment: Record<string, string> = {};
      for (const [, name, shown] of table.matchAll(/^\| `(\w+)` \| (.*?) \|/gm)) {
        if (shown !== "empty" && shown !== "SVC_DEVICE") environment[name as string] = shown as string;
      }
      expect(loadConfig(environment)).to.deep.equal(loadConfig({}));
    });

    it("every row of the settings table has three cells", () => {
      for (const row of table.split("\n")) expect(row.split("|")).to.have.length(5);
    });
  });
});
