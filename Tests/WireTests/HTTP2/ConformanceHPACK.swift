import Wire

/// Header compression (RFC 7541).
enum ConformanceHPACK {
    static let all = forms + indexes + strings + table

    private static func good(
        _ section: String, _ name: String, _ blocks: [[UInt8]]
    ) -> ConformanceCase {
        let frames = blocks.indices.map { RawFrame.headers(UInt32(2 * $0 + 1), blocks[$0]) }
        return .init(section, name, frames, .answered(frames.map(\.stream)))
    }

    private static func bad(
        _ section: String, _ name: String, _ block: [UInt8]
    ) -> ConformanceCase {
        .init(section, name, [.headers(1, block)], .connectionError(.compressionError))
    }

    /// `:method: GET`, `:scheme: http` and `:path: /` of the static table, and an authority.
    private static let usual: [UInt8] = [0x82, 0x86, 0x84, 0x01, 0x01, 0x61]
    private static let b: [UInt8] = [0x01, 0x62]
    /// `custom-key` and `custom-value`, Huffman-coded as in RFC 7541 §C.4.3.
    private static let huffmanName: [UInt8] = [
        0x88, 0x25, 0xA8, 0x49, 0xE9, 0x5B, 0xA9, 0x7D, 0x7F,
    ]
    private static let huffmanValue: [UInt8] = [
        0x89, 0x25, 0xA8, 0x49, 0xE9, 0x5B, 0xB8, 0xE8, 0xB4, 0xBF,
    ]
    private static let newName = RawHPACK.string("x-new")

    private static let forms = [
        good("RFC 7541 §6.1", "fields of the static table", [usual]),
        good(
            "RFC 7541 §6.1", "a field of the dynamic table",
            [usual + [0x40] + newName + b + [0xBE], usual + [0xBE]]),
        good(
            "RFC 7541 §6.2.1", "incremental indexing, name of the static table",
            [usual + [0x53] + b, usual + [0xBE]]),
        good(
            "RFC 7541 §6.2.1", "incremental indexing, name of the dynamic table",
            [usual + [0x40] + newName + b, usual + [0x7E] + b]),
        good("RFC 7541 §6.2.1", "incremental indexing, new name", [usual + [0x40] + newName + b]),
        good(
            "RFC 7541 §6.2.1", "incremental indexing, Huffman",
            [usual + [0x40] + huffmanName + huffmanValue]),
        good(
            "RFC 7541 §6.2.2", "without indexing, name of the static table",
            [usual + [0x0F, 0x04] + b]),
        good(
            "RFC 7541 §6.2.2", "without indexing, name of the dynamic table",
            [usual + [0x40] + newName + b + [0x0F, 0x2F] + b]),
        good("RFC 7541 §6.2.2", "without indexing, new name", [usual + [0x00] + newName + b]),
        good(
            "RFC 7541 §6.2.2", "without indexing, Huffman",
            [usual + [0x00] + huffmanName + huffmanValue]),
        good(
            "RFC 7541 §6.2.3", "never indexed, name of the static table",
            [usual + [0x1F, 0x04] + b]),
        good(
            "RFC 7541 §6.2.3", "never indexed, name of the dynamic table",
            [usual + [0x40] + newName + b + [0x1F, 0x2F] + b]),
        good("RFC 7541 §6.2.3", "never indexed, new name", [usual + [0x10] + newName + b]),
        good(
            "RFC 7541 §6.2.3", "never indexed, Huffman",
            [usual + [0x10] + huffmanName + huffmanValue]),
    ]

    private static let indexes = [
        bad("RFC 7541 §6.1", "index 0", [0x80]),
        bad("RFC 7541 §2.3.3", "an index past both tables", [0xBE]),
        bad("RFC 7541 §2.3.3", "a far index", [0xFF, 0x80, 0x01]),
        bad("RFC 7541 §2.3.3", "a name's index past both tables", [0x7E] + b),
        bad(
            "RFC 7541 §2.3.3", "a name's index past both tables, without indexing",
            [0x0F, 0x7F] + b),
        bad("RFC 7541 §2.3.3", "a name's index past both tables, never indexed", [0x1F, 0x7F] + b),
        bad("RFC 7541 §5.1", "an index of 2^35", [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        bad(
            "RFC 7541 §5.1", "an index that goes on for ever",
            [0xFF] + [UInt8](repeating: 0x80, count: 20)),
        bad("RFC 7541 §5.1", "an index that is cut off", [0xFF]),
        bad(
            "RFC 7541 §2.3.3", "an entry that was evicted",
            usual + [0x40] + newName + b + [0x20, 0xBE]),
    ]

    private static let strings = [
        bad("RFC 7541 §5.2", "a string that is cut off", [0x00, 0x05, 0x61]),
        bad("RFC 7541 §5.2", "a length that is cut off", [0x00, 0x7F]),
        bad("RFC 7541 §5.2", "a field without a value", usual + [0x00, 0x01, 0x61]),
        bad(
            "RFC 7541 §5.2", "Huffman padding of 8 bits and more",
            usual + [0x00, 0x01, 0x61, 0x82, 0x1F, 0xFF]),
        bad(
            "RFC 7541 §5.2", "Huffman padding of zeros",
            usual + [0x00, 0x01, 0x61, 0x81, 0x18]),
        bad(
            "RFC 7541 §5.2", "the EOS symbol in a Huffman string",
            usual + [0x00, 0x01, 0x61, 0x85, 0x1F, 0xFF, 0xFF, 0xFF, 0xFF]),
        good("RFC 7541 §5.2", "an empty Huffman string", [usual + [0x00, 0x01, 0x61, 0x80]]),
        good(
            "RFC 7541 §5.1", "a length of more bytes than needed",
            [usual + [0x00, 0x01, 0x61, 0x7F, 0x81, 0x00] + [UInt8](repeating: 0x62, count: 128)]),
    ]

    /// Two fields of 2,000 bytes each; the table of 4,096 holds both, with an overhead of 32 each.
    private static func large(_ name: String) -> [UInt8] {
        [0x40] + RawHPACK.string(name) + RawHPACK.string(String(repeating: "v", count: 2000))
    }

    private static let table = [
        good("RFC 7541 §6.3", "a size update at the beginning", [[0x20] + usual]),
        good(
            "RFC 7541 §4.2", "two size updates at the beginning",
            [[0x20, 0x3F, 0xE1, 0x1F] + usual]),
        good("RFC 7541 §6.3", "a size update to the limit", [[0x3F, 0xE1, 0x1F] + usual]),
        bad("RFC 7541 §6.3", "a size update above the limit", [0x3F, 0xE2, 0x1F] + usual),
        bad("RFC 7541 §4.2", "a size update behind a field", usual + [0x20]),
        bad("RFC 7541 §4.2", "a size update between fields", [0x82, 0x20] + usual.dropFirst()),
        good(
            "RFC 7541 §4.4", "two entries that fill the table",
            [usual + large("a") + large("b") + [0xBE, 0xBF]]),
        bad(
            "RFC 7541 §4.4", "the entry that a third evicts",
            usual + large("a") + large("b") + large("c") + [0xC0]),
        bad(
            "RFC 7541 §4.4", "an entry larger than the table empties it",
            usual + large("a") + [0x40, 0x01, 0x62] + RawHPACK.integer(4100, prefix: 7, pattern: 0)
                + [UInt8](repeating: 0x62, count: 4100) + [0xBE]),
        good(
            "RFC 7541 §2.3.2", "entries of one stream serve the next",
            [usual + large("a"), usual + [0xBE]]),
    ]
}
