/**
 * Journals in directories.
 *
 * @module
 */
export { FileStore, type FileStoreOptions, writeSegment } from "./file.ts";
export { fileSegment } from "./files.ts";
export { planRepair, repair, type RepairPlan, type SetAside } from "./repair.ts";
