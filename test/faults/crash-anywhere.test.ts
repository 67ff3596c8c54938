import { it } from "vitest";

it.todo("x");
