declare module "fs-native-extensions" {
  /**
   * Locks the file behind the descriptor `fd`. Returns false if the file is already locked through another descriptor.
   */
  export function tryLock(fd: number): boolean;
}
