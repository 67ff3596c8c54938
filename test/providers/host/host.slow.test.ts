import { describeRename, describeState, useHosts } from "./host";

const hosts = useHosts();
describeState(hosts, "KubernetesObject");
describeRename(hosts, "scripted");
