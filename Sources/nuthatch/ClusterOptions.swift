import ArgumentParser

/// The flags under “Cluster” of the table of settings.
struct ClusterOptions: ParsableArguments {
    @Option(help: help("cluster-secret-file"), completion: completion("cluster-secret-file"))
    var clusterSecretFile: String?

    @Option(help: help("join"))
    var join: [String] = []

    @Option(help: help("node-name"))
    var nodeName: String?

    @Option(help: help("expect"))
    var expect: String?

    @Option(help: help("join-timeout"))
    var joinTimeout: String?

    @Option(help: help("peer-listen"))
    var peerListen: String?

    @Option(help: help("peer-advertise"))
    var peerAdvertise: String?

    @Option(help: help("replicas"))
    var replicas: String?

    @Option(help: help("ring-weight"))
    var ringWeight: String?

    @Option(help: help("ring-weight-limit"))
    var ringWeightLimit: String?

    @Option(help: help("hand-over-timeout"))
    var handOverTimeout: String?

    @Option(help: help("fence"))
    var fence: String?

    @Option(help: help("forget-after"))
    var forgetAfter: String?

    /// The texts given for each setting; empty for a setting that is not given.
    var flags: [(String, [String])] {
        [
            ("cluster-secret-file", clusterSecretFile.texts),
            ("join", join),
            ("node-name", nodeName.texts),
            ("expect", expect.texts),
            ("join-timeout", joinTimeout.texts),
            ("peer-listen", peerListen.texts),
            ("peer-advertise", peerAdvertise.texts),
            ("replicas", replicas.texts),
            ("ring-weight", ringWeight.texts),
            ("ring-weight-limit", ringWeightLimit.texts),
            ("hand-over-timeout", handOverTimeout.texts),
            ("fence", fence.texts),
            ("forget-after", forgetAfter.texts),
        ]
    }
}
