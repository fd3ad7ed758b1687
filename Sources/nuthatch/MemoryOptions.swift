import ArgumentParser

/// The flags under “Memory” of the table of settings.
struct MemoryOptions: ParsableArguments {
    @Option(help: help("memory-limit"))
    var memoryLimit: String?

    @Option(help: help("memory-entries"))
    var memoryEntries: String?

    @Option(help: help("memory-pressure"), completion: completion("memory-pressure"))
    var memoryPressure: String?

    @Option(help: help("object-limit"))
    var objectLimit: String?

    @Option(help: help("variants-limit"))
    var variantsLimit: String?

    @Option(help: help("default-ttl"))
    var defaultTTL: String?

    /// The texts given for each setting; none for those not given.
    var flags: [(String, [String])] {
        [
            ("memory-limit", memoryLimit.texts),
            ("memory-entries", memoryEntries.texts),
            ("memory-pressure", memoryPressure.texts),
            ("object-limit", objectLimit.texts),
            ("variants-limit", variantsLimit.texts),
            ("default-ttl", defaultTTL.texts),
        ]
    }
}
