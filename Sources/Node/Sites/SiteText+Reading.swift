extension RawSiteBlock.Value {
    /// The only value.
    func scalar<Value>(_ read: (String) -> Value?) throws(SiteOptionError) -> Value {
        guard case .scalar(let text) = self else { throw wrongTypeError }
        guard let value = read(text.text) else { throw text.error() }
        return value
    }

    /// Every value of a list, or of a list of one that is written without brackets.
    func elements<Value>(_ read: (String) -> Value?) throws(SiteOptionError) -> [Value] {
        var values: [Value] = []
        for text in try scalars() {
            guard let value = read(text.text) else { throw text.error() }
            values.append(value)
        }
        return values
    }

    /// The pairs of a mapping, or of a list of `name=value`.
    func pairs() throws(SiteOptionError) -> [RawSiteBlock.Pair] {
        if case .pairs(let pairs) = self {
            guard !pairs.contains(where: \.isFile) else { throw wrongTypeError }
            return pairs
        }
        var pairs: [RawSiteBlock.Pair] = []
        for text in try scalars() {
            let parts = text.text.split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { throw text.error() }
            pairs.append(
                RawSiteBlock.Pair(
                    name: ConfigurationFile.LocatedText(text: String(parts[0]), line: text.line),
                    value: ConfigurationFile.LocatedText(text: String(parts[1]), line: text.line)))
        }
        return pairs
    }

    /// It is not of the shape that the setting takes.
    var wrongTypeError: SiteOptionError { SiteOptionError(text: "", line: nil, reason: .wrongType) }

    /// The values of a list, or the only one.
    func scalars() throws(SiteOptionError) -> [ConfigurationFile.LocatedText] {
        switch self {
        case .scalar(let text): [text]
        case .list(let texts): texts
        case .pairs, .nested: throw wrongTypeError
        }
    }
}

extension ConfigurationFile.LocatedText {
    func error(_ reason: SiteOptionError.Reason = .malformed) -> SiteOptionError {
        SiteOptionError(text: text, line: line, reason: reason)
    }
}
