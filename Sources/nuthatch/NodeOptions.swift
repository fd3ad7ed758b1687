import ArgumentParser

/// The flags under “Node” of the table of settings.
struct NodeOptions: ParsableArguments {
    @Option(help: help("config"), completion: completion("config"))
    var config: String?

    @Option(help: help("listen"))
    var listen: [String] = []

    @Option(help: help("admin-listen"))
    var adminListen: String?

    @Option(help: help("admin-token-file"), completion: completion("admin-token-file"))
    var adminTokenFile: String?

    @Option(help: help("loops"))
    var loops: String?

    @Option(help: help("access-log"), completion: completion("access-log"))
    var accessLog: String?

    @Option(help: help("log-level"), completion: completion("log-level"))
    var logLevel: String?

    @Option(help: help("log-format"), completion: completion("log-format"))
    var logFormat: String?

    @Option(help: help("decision-token-file"), completion: completion("decision-token-file"))
    var decisionTokenFile: String?

    @Option(help: help("signing-key-file"), completion: completion("signing-key-file"))
    var signingKeyFile: String?

    @Option(help: help("drain-timeout"))
    var drainTimeout: String?

    /// The texts given for each setting; none for those not given.
    var flags: [(String, [String])] {
        [
            ("config", config.texts),
            ("listen", listen),
            ("admin-listen", adminListen.texts),
            ("admin-token-file", adminTokenFile.texts),
            ("loops", loops.texts),
            ("access-log", accessLog.texts),
            ("log-level", logLevel.texts),
            ("log-format", logFormat.texts),
            ("decision-token-file", decisionTokenFile.texts),
            ("signing-key-file", signingKeyFile.texts),
            ("drain-timeout", drainTimeout.texts),
        ]
    }
}
