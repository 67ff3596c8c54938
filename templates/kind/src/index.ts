export { newKind } from "./new-kind/kind";
