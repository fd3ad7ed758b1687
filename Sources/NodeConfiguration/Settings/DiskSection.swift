package import Ground

/// The settings of the disk cache.
package struct DiskSection: SettingSection {
    /// The heading in `--help`.
    package static let title = "Disk"

    package let cacheDir = SettingKey(
        "cache-dir", .directory, note: "none, which keeps images in memory only",
        example: "/var/cache/nuthatch", needsRestart: true,
        meaning: "Directory of the disk cache; of nodes that share it each has its own below",
        advice: "Give it a disk that outlives the container.")

    package let diskLimit = SettingKey(
        "disk-limit", .bytes(0...1 << 50), default: "10GiB", needsRestart: true,
        meaning: "Disk that the node takes, everything included; 0 turns the disk cache off",
        advice: "Raise it while entries are evicted and the disk has room.")

    package let ageLimit = SettingKey(
        "age-limit", .durationOrNone(.zero ... .seconds(10 * 365 * 86_400)), default: "720h",
        note: "720h; 0s for no limit", needsRestart: true,
        meaning: "Time after which an image that nobody asked for leaves the disk",
        advice: "Shorten it to free room for other images sooner than reclaim does.")

    package let touchInterval = SettingKey(
        "touch-interval", .durationOrNone(.zero ... .seconds(3600)), default: "5s",
        note: "5s; 0s for never", needsRestart: true,
        meaning: "How often the disk cache is told which images were served from memory",
        advice: "Without it an image served from memory looks idle, and leaves the disk.")

    package let diskQueueLimit = SettingKey(
        "disk-queue-limit", .bytes(1 << 20...1 << 34), default: "32MiB",
        note: "32MiB, or a quarter of memory-limit where that is less", needsRestart: true,
        meaning: "Images that wait to be written to disk; further ones are not kept there",
        advice: "If records are dropped with a sound disk, raise it for bursts of misses.")

    package let diskThreads = SettingKey(
        "disk-threads", .count(1...256), default: "4", needsRestart: true,
        meaning: "Threads that read what the page cache does not hold",
        advice: "As many as the disk serves at one time: few for one, many for an array.")
}
