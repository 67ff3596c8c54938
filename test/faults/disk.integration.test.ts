import { describeFullDisk } from "./disk";

describeFullDisk({ isLong: false });
