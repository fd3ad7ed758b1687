import ArgumentParser

/// The flags under “Disk” of the table of settings.
struct DiskOptions: ParsableArguments {
    @Option(help: help("cache-dir"), completion: completion("cache-dir"))
    var cacheDir: String?

    @Option(help: help("disk-limit"))
    var diskLimit: String?

    @Option(help: help("age-limit"))
    var ageLimit: String?

    @Option(help: help("touch-interval"))
    var touchInterval: String?

    @Option(help: help("disk-queue-limit"))
    var diskQueueLimit: String?

    @Option(help: help("disk-threads"))
    var diskThreads: String?

    /// The texts given for each setting; none for those not given.
    var flags: [(String, [String])] {
        [
            ("cache-dir", cacheDir.texts),
            ("disk-limit", diskLimit.texts),
            ("age-limit", ageLimit.texts),
            ("touch-interval", touchInterval.texts),
            ("disk-queue-limit", diskQueueLimit.texts),
            ("disk-threads", diskThreads.texts),
        ]
    }
}
