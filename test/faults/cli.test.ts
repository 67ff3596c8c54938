import { describeCli } from "./cli";

describeCli(["that hangs", "that prints rubbish and claims success"]);
