import Ground
import HTTPRules

extension ResponseFieldRules {
    /// Rules from text with lines `name: value`.
    init(
        removed: [String] = [], lines: [String] = [], tags: [String] = [], control: String? = nil
    ) {
        self.init(
            removed: FieldNames(removed),
            lines: lines.compactMap { FieldSetting(text: $0) },
            tagsStripped: FieldNames(tags), clientCacheControl: control?.bytes)
    }
}

extension FieldSetting {
    /// The line `name: value`.
    init?(text: String) {
        let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
        self.init(name: parts[0], value: parts[1])
    }
}

extension StoredHead {
    /// A head without settings, from fields `name: value`.
    init(
        site fields: [String], status: UInt16 = 200, size: UInt64? = nil,
        rules: ResponseFieldRules = .none, unstored: [String] = [], received: WallTime? = nil
    ) {
        self.init(
            ResponseHead(status: status, fields: fields), size: size, rules: rules,
            unstored: FieldNames(unstored), received: received)
    }

    /// The field lines without the status line.
    var fields: [String] { bytes.lines.dropFirst().map { $0 } }
}

extension [UInt8] {
    /// The text between the line ends.
    var lines: [String] {
        var lines: [String] = []
        var line: [UInt8] = []
        for byte in self {
            line.append(byte)
            if line.suffix(2) == [0x0D, 0x0A] {
                lines.append(Array(line.dropLast(2)).text)
                line = []
            }
        }
        return line.isEmpty ? lines : lines + [line.text]
    }
}

extension ResponseHead {
    /// The lines as `name: value`.
    var fields: [String] {
        lines.map { bytes.text($0.name) + ": " + bytes.text($0.value) }
    }
}
