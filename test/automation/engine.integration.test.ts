import { describeEngine } from "./engine";

describeEngine("server");
