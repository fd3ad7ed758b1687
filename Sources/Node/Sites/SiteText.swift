import Yams

/// What a file says of one site, as texts.
struct SiteText {
    /// What one key was given.
    enum Value {
        case scalar(ConfigurationFile.Text)
        case list([ConfigurationFile.Text])
        /// A mapping of one level, in the order of the file.
        case pairs([(name: ConfigurationFile.Text, value: ConfigurationFile.Text)])
        /// Anything deeper.
        case nested
    }

    let pattern: ConfigurationFile.Text
    let options: [(key: ConfigurationFile.Text, value: Value)]
}

extension SiteText {
    /// The sites under the key `sites`; nil if that is no mapping of words.
    static func all(under node: Yams.Node) -> [SiteText]? {
        if let scalar = node.scalar, scalar.string.isEmpty, scalar.style == .plain { return [] }
        guard let mapping = node.mapping else { return nil }
        var sites: [SiteText] = []
        for (key, value) in mapping {
            guard let pattern = ConfigurationFile.text(key) else { return nil }
            if let text = ConfigurationFile.text(value) {
                let origin = ConfigurationFile.Text(
                    text: SiteOption.origin.rawValue, line: pattern.line)
                sites.append(SiteText(pattern: pattern, options: [(origin, .scalar(text))]))
                continue
            }
            guard let mapping = value.mapping else { return nil }
            var options: [(key: ConfigurationFile.Text, value: Value)] = []
            for (key, value) in mapping {
                guard let key = ConfigurationFile.text(key) else { return nil }
                options.append((key, Self.value(value)))
            }
            sites.append(SiteText(pattern: pattern, options: options))
        }
        return sites
    }

    private static func value(_ node: Yams.Node) -> Value {
        if let text = ConfigurationFile.text(node) { return .scalar(text) }
        if let sequence = node.sequence {
            let texts = sequence.compactMap(ConfigurationFile.text)
            return texts.count == sequence.count ? .list(texts) : .nested
        }
        guard let mapping = node.mapping else { return .nested }
        var pairs: [(name: ConfigurationFile.Text, value: ConfigurationFile.Text)] = []
        for (key, value) in mapping {
            guard let name = ConfigurationFile.text(key),
                let value = ConfigurationFile.text(value)
            else { return .nested }
            pairs.append((name, value))
        }
        return .pairs(pairs)
    }
}

extension SiteText.Value {
    /// As it can be written again, on one line.
    var yaml: String {
        switch self {
        case .scalar(let text): Configuration.yaml(text.text)
        case .list(let texts):
            "[" + texts.map { Configuration.yaml($0.text) }.joined(separator: ", ") + "]"
        case .pairs(let pairs):
            "{"
                + pairs.map {
                    "\(Configuration.yaml($0.name.text)): \(Configuration.yaml($0.value.text))"
                }.joined(separator: ", ") + "}"
        case .nested: ""
        }
    }
}
