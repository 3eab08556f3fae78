import { expect } from "chai";
import fc from "fast-check";
import { RequestError } from "../../../src/music/errors.js";
import {
  parseAdapterExport,
  parseLokrTraining,
  parseLoraTraining,
  parseTensorInfo,
} from "../../../src/music/request/training-bodies.js";
import type { Fields } from "../../../src/parameters.js";
import { thrownBy } from "../../failures.js";

const kinds: [name: string, parse: (fields: Fields) => object][] = [
  ["LoRA", parseLoraTraining],
  ["LoKr", parseLokrTraining],
];

function refusalOf(parse: (fields: Fields) => object, fields: Fields): string {
  const error = thrownBy(() => parse(fields));
  expect(error).to.be.instanceOf(RequestError);
  return (error as RequestError).detail;
}

describe("parsing of training requests", () => {
  const common = {
    tensorDir: "sets/mine",
    batchSize: 1,
    gradientAccumulation: 4,
    saveEveryEpochs: 5,
    shift: 3,
    seed: 42,
    gradientCheckpointing: false,
    timestepSampling: "auto",
    trimCondition: false,
    conditionDropout: null,
    resumeFrom: null,
    warnings: [],
  };

  it("training requests have the defaults of the API", () => {
    expect(parseLoraTraining({ tensor_dir: "sets/mine" })).to.deep.equal({
      ...common,
      outputDir: "./lora_output",
      learningRate: 1e-4,
      epochs: 10,
      rank: 64,
      alpha: 128,
      dropout: 0.1,
      useFp8: false,
    });
    expect(parseLokrTraining({ tensor_dir: "sets/mine" })).to.deep.equal({
      ...common,
      outputDir: "./lokr_output",
      learningRate: 0.03,
      epochs: 500,
      dimension: 64,
      alpha: 128,
      factor: -1,
      decomposeBoth: false,
      useTucker: false,
      useScalar: false,
      weightDecompose: true,
    });
  });

  for (const [name, parse] of kinds) {
    it(`${name} training accepts every common parameter, also as text`, () => {
      const values = parse({
        tensor_dir: " sets/mine ",
        train_epochs: "7",
        train_batch_size: 2,
        gradient_accumulation: 3,
        save_every_n_epochs: 4,
        learning_rate: "2e-3",
        training_shift: 1.5,
        training_seed: 0,
        gradient_checkpointing: "true",
        timestep_sampling: "LOGIT_NORMAL",
        trim_condition: "true",
        cfg_ratio: 0.25,
        resume_from: "out/checkpoints/epoch_1_loss_0.1",
      });
      expect(values).to.deep.include({
        tensorDir: "sets/mine",
        epochs: 7,
        batchSize: 2,
        gradientAccumulation: 3,
        saveEveryEpochs: 4,
        learningRate: 2e-3,
        shift: 1.5,
        seed: 0,
        gradientCheckpointing: true,
        timestepSampling: "logit_normal",
        trimCondition: true,
        conditionDropout: 0.25,
        resumeFrom: "out/checkpoints/epoch_1_loss_0.1",
      });
    });

    it(`${name} training accepts both names of the output directory`, () => {
      for (const key of ["output_dir", "lora_output_dir"]) {
        expect(parse({ tensor_dir: "t", [key]: "out" })).to.have.property("outputDir", "out");
      }
    });

    it(`${name} training treats shift 0 as the default`, () => {
      expect(parse({ tensor_dir: "t", training_shift: 0 })).to.have.property("shift", 3);
    });

    const refused: [field: string, value: unknown][] = [
      ["train_epochs", 0],
      ["train_epochs", 1.5],
      ["train_epochs", "many"],
      ["train_batch_size", 0],
      ["gradient_accumulation", 0],
      ["save_every_n_epochs", 0],
      ["save_every_n_epochs", -1],
      ["learning_rate", 0],
      ["learning_rate", -1e-4],
      ["learning_rate", 1e39],
      ["learning_rate", "nan"],
      ["learning_rate", "inf"],
      ["learning_rate", {}],
      ["training_shift", -0.1],
      ["training_seed", -1],
      ["training_seed", 2 ** 53],
      ["gradient_checkpointing", []],
      ["timestep_sampling", "uniform"],
      ["trim_condition", []],
      ["cfg_ratio", -0.01],
      ["cfg_ratio", 1.01],
      ["tensor_dir", ["t"]],
      ["tensor_dir", ""],
      ["resume_from", {}],
    ];
    for (const [field, value] of refused) {
      it(`${name} training refuses ${field} ${JSON.stringify(value)} and names the field`, () => {
        expect(refusalOf(parse, { tensor_dir: "t", [field]: value })).to.match(new RegExp(`^${field} `));
      });
    }

    it(`${name} training requires tensor_dir`, () => {
      expect(refusalOf(parse, {})).to.include("tensor_dir is required");
    });
  }

  const bounds: [parse: (fields: Fields) => object, field: string, low: number, high: number][] = [
    [parseLoraTraining, "lora_rank", 1, 256],
    [parseLoraTraining, "lora_alpha", 1, 512],
    [parseLokrTraining, "lokr_linear_dim", 1, 256],
    [parseLokrTraining, "lokr_linear_alpha", 1, 512],
    [parseLokrTraining, "lokr_factor", 1, 8],
  ];
  for (const [parse, field, low, high] of bounds) {
    it(`${field} must be from ${low} to ${high}`, () => {
      for (const value of [low, high]) {
        expect(Object.values(parse({ tensor_dir: "t", [field]: value }))).to.include(value);
      }
      for (const value of [low - 1, high + 1]) {
        expect(refusalOf(parse, { tensor_dir: "t", [field]: value })).to.include(field);
      }
    });
  }

  it("lora_dropout must be from 0 to 1", () => {
    for (const value of [0, 1]) {
      expect(parseLoraTraining({ tensor_dir: "t", lora_dropout: value }).dropout).to.equal(value);
    }
    for (const value of [-0.1, 1.1]) {
      expect(refusalOf(parseLoraTraining, { tensor_dir: "t", lora_dropout: value })).to.include(
        "lora_dropout",
      );
    }
  });

  it("lokr_factor may be -1 (automatic), but not another negative value", () => {
    expect(parseLokrTraining({ tensor_dir: "t", lokr_factor: -1 }).factor).to.equal(-1);
    expect(refusalOf(parseLokrTraining, { tensor_dir: "t", lokr_factor: -2 })).to.include(
      "lokr_factor must be -1",
    );
  });

  it("LoKr training reads the flags for its factors and DoRA", () => {
    const values = parseLokrTraining({
      tensor_dir: "t",
      lokr_decompose_both: true,
      lokr_use_tucker: true,
      lokr_use_scalar: true,
      lokr_weight_decompose: false,
    });
    expect(values).to.include({
      decomposeBoth: true,
      useTucker: true,
      useScalar: true,
      weightDecompose: false,
    });
  });

  it("an export without a required path is refused with the name of the parameter", () => {
    const paths = { export_path: "mine", lora_output_dir: "out" };
    expect(parseAdapterExport(paths)).to.deep.equal({
      exportPath: "mine",
      outputDir: "out",
      foldAlpha: false,
      comfySingleFile: false,
    });
    expect(refusalOf(parseAdapterExport, { lora_output_dir: "out" })).to.include("export_path");
    expect(refusalOf(parseAdapterExport, { export_path: "mine" })).to.include("lora_output_dir");
    expect(parseTensorInfo({ tensor_dir: "t" }).tensorDir).to.equal("t");
  });

  it("random values of training requests are parsed to values in range, or refused in one line", () => {
    const fieldNames = [
      ...[
        "train_epochs",
        "train_batch_size",
        "learning_rate",
        "training_shift",
        "training_seed",
        "cfg_ratio",
      ],
      ...["lora_rank", "lora_alpha", "lora_dropout", "lokr_linear_dim", "lokr_linear_alpha", "lokr_factor"],
    ];
    const value = fc.oneof(
      fc.integer({ min: -3, max: 520 }),
      fc.double(),
      fc.double().map(String),
      fc.constantFrom("nan", "-inf", "1e999", "", null, true, [], {}),
      fc.string(),
    );
    const body = fc.dictionary(fc.constantFrom(...fieldNames), value);
    fc.assert(
      fc.property(body, fc.constantFrom(...kinds), (fields, [, parse]) => {
        let values: Record<string, unknown>;
        try {
          values = parse({ ...fields, tensor_dir: "t" }) as Record<string, unknown>;
        } catch (error) {
          expect(error).to.be.instanceOf(RequestError);
          expect((error as RequestError).detail).to.match(/^[^\n]{1,200}$/);
          return;
        }
        const within = (name: string, low: number, high: number) =>
          expect(values[name] ?? low, name)
            .to.be.a("number")
            .within(low, high);
        for (const name of ["epochs", "batchSize"]) within(name, 1, 2 ** 31 - 1);
        within("learningRate", Number.MIN_VALUE, Number.MAX_VALUE);
        within("shift", Number.MIN_VALUE, Number.MAX_VALUE);
        within("seed", 0, Number.MAX_SAFE_INTEGER);
        for (const name of ["dropout", "conditionDropout"]) within(name, 0, 1);
        for (const name of ["rank", "dimension"]) within(name, 1, 256);
        within("alpha", 1, 512);
        within("factor", -1, 8);
        expect(values.factor).to.not.equal(0);
      }),
    );
  });
});
