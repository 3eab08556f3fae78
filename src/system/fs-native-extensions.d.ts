declare module "fs-native-extensions" {
  /** Locks the whole file for this open file; false if another open file holds the lock. */
  export function tryLock(fd: number): boolean;
}
