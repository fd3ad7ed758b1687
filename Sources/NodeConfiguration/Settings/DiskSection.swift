package import Ground

/// The settings of the disk cache.
package struct DiskSection: SettingSection {
    /// The heading in `--help`.
    package static let title = "Disk"

    package let cacheDir = SettingKey(
        "cache-dir", .directory, note: "none (memory only)",
        example: "/var/cache/nuthatch", needsRestart: true,
        meaning: "Directory of the disk cache; each node that shares it has a subdirectory",
        advice: "Put it on a disk that outlives the container.")

    package let diskLimit = SettingKey(
        "disk-limit", .bytes(0...1 << 50), default: "10GiB", needsRestart: true,
        meaning: "Disk space that the node uses, everything included; 0 turns the disk cache off",
        advice: "Raise it if entries are evicted while the disk has room.")

    package let ageLimit = SettingKey(
        "age-limit", .durationOrNone(.zero ... .seconds(10 * 365 * 86_400)), default: "720h",
        note: "720h; 0s for no limit", needsRestart: true,
        meaning: "Time after which an image that nobody has requested is removed from disk",
        advice: "Shorten it to free room for other images sooner than reclaim does.")

    package let touchInterval = SettingKey(
        "touch-interval", .durationOrNone(.zero ... .seconds(3600)), default: "5s",
        note: "5s; 0s for never", needsRestart: true,
        meaning: "Interval at which the disk cache learns which images were served from memory",
        advice: "Without it an image served from memory looks idle and is removed from disk.")

    package let diskQueueLimit = SettingKey(
        "disk-queue-limit", .bytes(1 << 20...1 << 34), default: "32MiB",
        note: "32MiB, or a quarter of memory-limit if that is less", needsRestart: true,
        meaning: "Size of images waiting to be written to disk; further ones are not stored there",
        advice: "If a healthy disk drops records, raise it for bursts of misses.")

    package let diskThreads = SettingKey(
        "disk-threads", .count(1...256), default: "4", needsRestart: true,
        meaning: "Threads that read data that is not in the page cache",
        advice: "As many as the disk serves in parallel: few for one disk, many for an array.")
}
