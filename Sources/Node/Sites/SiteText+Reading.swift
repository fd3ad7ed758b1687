extension SiteText.Value {
    /// The only value.
    func one<Value>(_ read: (String) -> Value?) throws(SiteRefusal) -> Value {
        guard case .scalar(let text) = self else { throw ofOtherShape }
        guard let value = read(text.text) else { throw text.refused() }
        return value
    }

    /// Every value of a list, or of a list of one that is written without brackets.
    func each<Value>(_ read: (String) -> Value?) throws(SiteRefusal) -> [Value] {
        var values: [Value] = []
        for text in try texts() {
            guard let value = read(text.text) else { throw text.refused() }
            values.append(value)
        }
        return values
    }

    /// The pairs of a mapping, or of a list of `name=value`.
    func asPairs() throws(SiteRefusal) -> [SiteText.Pair] {
        if case .pairs(let pairs) = self {
            guard !pairs.contains(where: \.isFile) else { throw ofOtherShape }
            return pairs
        }
        var pairs: [SiteText.Pair] = []
        for text in try texts() {
            let parts = text.text.split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { throw text.refused() }
            pairs.append(
                SiteText.Pair(
                    name: ConfigurationFile.Text(text: String(parts[0]), line: text.line),
                    value: ConfigurationFile.Text(text: String(parts[1]), line: text.line)))
        }
        return pairs
    }

    /// It is not of the shape that the setting takes.
    var ofOtherShape: SiteRefusal { SiteRefusal(text: "", line: nil, reason: .shape) }

    /// The values of a list, or the only one.
    func texts() throws(SiteRefusal) -> [ConfigurationFile.Text] {
        switch self {
        case .scalar(let text): [text]
        case .list(let texts): texts
        case .pairs, .nested: throw ofOtherShape
        }
    }
}

extension ConfigurationFile.Text {
    func refused(_ reason: SiteRefusal.Reason = .malformed) -> SiteRefusal {
        SiteRefusal(text: text, line: line, reason: reason)
    }
}
