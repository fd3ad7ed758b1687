package import Ground

/// The settings of the memory tier.
package struct MemorySection: SettingSection {
    /// The heading in `--help`.
    package static let title = "Memory"

    package let memoryLimit = SettingKey(
        "memory-limit", .bytes(16 << 20...1 << 40), default: "512MiB",
        meaning: "Memory that stored images may take, heads and bookkeeping included",
        advice: "Raise it while evictions go on and the machine has memory to spare.")

    package let memoryEntries = SettingKey(
        "memory-entries", .count(0...1_000_000_000), default: "0", note: "0 (no limit)",
        meaning: "Number of images that may be stored",
        advice: "Leave it at 0 unless something other than memory bounds the number.")

    package let memoryPressure = SettingKey(
        "memory-pressure", .onOff, default: "on",
        meaning: "Whether memory is given up before the container or machine runs out of it",
        advice: "off where something else keeps the process within its memory.")

    package let objectLimit = SettingKey(
        "object-limit", .bytes(1 << 10...1 << 40), default: "64MiB",
        note: "64MiB, or memory-limit where that is less",
        meaning: "Largest body that is stored; larger ones are passed through",
        advice: "Raise it if larger images are asked for often; at most memory-limit.")

    package let variantsLimit = SettingKey(
        "variants-limit", .count(1...1_000), default: "64",
        meaning: "Answers of a site that are stored under one URL, for requests that differ",
        advice: "Raise it only if more forms of one page are in use; the least used ones go.")

    package let defaultTTL = SettingKey(
        "default-ttl", .duration(.zero ... .seconds(365 * 86_400)), default: "1h",
        meaning: "Time for which an image is fresh whose origin does not say",
        advice: "Shorten it if images change under the same URL and origins send no lifetime.")
}
