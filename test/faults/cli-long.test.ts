import { describeCli, MISBEHAVIOURS } from "./cli";

describeCli(MISBEHAVIOURS);
