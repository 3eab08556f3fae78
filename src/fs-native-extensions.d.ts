declare module "fs-native-extensions" {
  /** Takes the lock of the whole file for this open file; false where another open file has it. */
  export function tryLock(fd: number): boolean;
}
