import { describeEngine } from "./engine";

// Without a server each command is a process. That they end well also without it, `interruption.integration` shows.
describeEngine("cli");
