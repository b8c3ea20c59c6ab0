/** What an accelerator's platform calls its devices: in the environment, and as a resource of Ray. */
export interface Platform {
  readonly name: PlatformName;
  /** The variable that says which devices a process sees. */
  readonly visibleDevices: string;
  /** The resource key in Ray's node maps; null where Ray does not count them. */
  readonly rayKey: string | null;
  /** On CUDA-like platforms a worker picks its device by its local rank, and the variable is left alone. */
  readonly cudaLike: boolean;
}

export type PlatformName =
  | "cuda"
  | "rocm"
  | "xpu"
  | "hpu"
  | "tpu"
  | "neuron"
  | "ascend"
  | "musa"
  | "cpu";

/** ROCm shares CUDA's variable; XPU and MUSA share Ray's `GPU` key. */
export const PLATFORMS: Readonly<Record<PlatformName, Platform>> = {
  cuda: platform("cuda", "CUDA_VISIBLE_DEVICES", "GPU", true),
  rocm: platform("rocm", "CUDA_VISIBLE_DEVICES", "GPU", true),
  xpu: platform("xpu", "ZE_AFFINITY_MASK", "GPU", false),
  hpu: platform("hpu", "HABANA_VISIBLE_MODULES", "HPU", false),
  tpu: platform("tpu", "TPU_VISIBLE_CHIPS", "TPU", false),
  neuron: platform("neuron", "NEURON_RT_VISIBLE_CORES", "neuron_cores", false),
  ascend: platform("ascend", "ASCEND_RT_VISIBLE_DEVICES", "NPU", false),
  musa: platform("musa", "MUSA_VISIBLE_DEVICES", "GPU", false),
  cpu: platform("cpu", "CPU_VISIBLE_MEMORY_NODES", null, false),
};

function platform(
  name: PlatformName,
  visibleDevices: string,
  rayKey: string | null,
  cudaLike: boolean,
): Platform {
  return { name, visibleDevices, rayKey, cudaLike };
}

/**
 * Does vLLM set the device variable around the start of a local engine (section 3, "Device selection")?
 * Only with several ranks, and only where workers do not pick a device by their local rank.
 */
export const setsVisibleDevices = (
  on: Platform,
  dataParallelSize: number,
  rayExecutor: boolean,
): boolean => dataParallelSize > 1 && (!on.cudaLike || rayExecutor);
