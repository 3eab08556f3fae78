/**
 * Parts of the page that few visits need, in one script. Scripts that share modules with the page split it, and each piece
 * is one more request before the page shows.
 */
export { FirstMinute } from "./first-minute.js";
export { RadioControls } from "./radio-controls.js";
export { RecordingTask } from "./recording-task.js";
export { WorkshopParts } from "./workshop-parts.js";
