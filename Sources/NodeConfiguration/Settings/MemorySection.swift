package import Ground

/// The settings of the memory tier.
package struct MemorySection: SettingSection {
    /// The heading in `--help`.
    package static let title = "Memory"

    package let memoryLimit = SettingKey(
        "memory-limit", .bytes(16 << 20...1 << 40), default: "512MiB",
        meaning: "Memory for stored images, including heads and bookkeeping",
        advice: "Raise it if evictions continue and the machine has memory to spare.")

    package let memoryEntries = SettingKey(
        "memory-entries", .count(0...1_000_000_000), default: "0", note: "0 (no limit)",
        meaning: "Largest number of stored images",
        advice: "Leave it at 0 unless something other than memory bounds the number.")

    package let memoryPressure = SettingKey(
        "memory-pressure", .onOff, default: "on",
        meaning: "Whether memory is released before the container or machine runs out of it",
        advice: "Use off if something else keeps the process within its memory.")

    package let objectLimit = SettingKey(
        "object-limit", .bytes(1 << 10...1 << 40), default: "64MiB",
        note: "64MiB, or memory-limit if that is less",
        meaning: "Largest body that is stored; larger ones are passed through",
        advice: "Raise it if larger images are requested often; at most memory-limit.")

    package let variantsLimit = SettingKey(
        "variants-limit", .count(1...1_000), default: "64",
        meaning: "Variants of a site's response that are stored under one URL",
        advice: "Raise it only if more variants of a page are in use; the least used are removed.")

    package let defaultTTL = SettingKey(
        "default-ttl", .duration(.zero ... .seconds(365 * 86_400)), default: "1h",
        meaning: "Freshness lifetime of an image whose origin gives none",
        advice: "Shorten it if images change under the same URL and origins send no lifetime.")
}
