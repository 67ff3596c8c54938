export { newKind } from "./kind";
