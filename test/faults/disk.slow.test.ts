import { describeFullDisk } from "./disk";

describeFullDisk({ isLong: true });
