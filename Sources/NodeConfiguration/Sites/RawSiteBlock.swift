import Yams

/// The block of one site, or of the images from some origins, in a configuration file, as texts.
struct RawSiteBlock {
    /// The value of a key.
    enum Value {
        case scalar(ConfigurationFile.LocatedText)
        case list([ConfigurationFile.LocatedText])
        /// A mapping of one level, in the order of the file.
        case pairs([Pair])
        /// Anything deeper.
        case nested
    }

    /// A name of a mapping with its value.
    struct Pair {
        /// The name.
        let name: ConfigurationFile.LocatedText
        /// The value, or the path of a file that holds it.
        let value: ConfigurationFile.LocatedText
        /// True if it was written as `{file: PATH}`: ``value`` is the path of a file that holds the
        /// value.
        var isFile = false
    }

    /// A key with its value.
    typealias Option = (key: ConfigurationFile.LocatedText, value: Value)

    /// The key of the block: the site's host pattern, or the pattern of the origins.
    let pattern: ConfigurationFile.LocatedText
    /// The options, in the order of the file.
    let options: [Option]
}

extension RawSiteBlock {
    /// Returns the blocks of a mapping of sites or of image origins, in which a text instead of a
    /// block gives only the origin; empty for an empty node.
    ///
    /// Returns `nil` unless the node is a mapping of plain keys to texts or mappings.
    static func sites(under node: Yams.Node) -> [RawSiteBlock]? {
        if let scalar = node.scalar, scalar.string.isEmpty, scalar.style == .plain { return [] }
        guard let mapping = node.mapping else { return nil }
        var sites: [RawSiteBlock] = []
        for (key, value) in mapping {
            guard let pattern = ConfigurationFile.text(key) else { return nil }
            if let text = ConfigurationFile.text(value) {
                let origin = ConfigurationFile.LocatedText(
                    text: SiteOption.all.origin.name, line: pattern.line)
                sites.append(RawSiteBlock(pattern: pattern, options: [(origin, .scalar(text))]))
                continue
            }
            guard let options = options(of: value) else { return nil }
            sites.append(RawSiteBlock(pattern: pattern, options: options))
        }
        return sites
    }

    /// Returns the options of a block, empty for an empty node; `nil` if it is not a mapping with
    /// plain keys.
    static func options(of node: Yams.Node) -> [Option]? {
        if let scalar = node.scalar, scalar.string.isEmpty, scalar.style == .plain { return [] }
        guard let mapping = node.mapping else { return nil }
        var options: [Option] = []
        for (key, value) in mapping {
            guard let key = ConfigurationFile.text(key) else { return nil }
            options.append((key, Self.value(value)))
        }
        return options
    }

    /// Returns the value of a node.
    private static func value(_ node: Yams.Node) -> Value {
        if let text = ConfigurationFile.text(node) { return .scalar(text) }
        if let sequence = node.sequence {
            let texts = sequence.compactMap(ConfigurationFile.text)
            return texts.count == sequence.count ? .list(texts) : .nested
        }
        guard let mapping = node.mapping else { return .nested }
        var pairs: [Pair] = []
        for (key, value) in mapping {
            guard let name = ConfigurationFile.text(key), let pair = pair(name, value)
            else { return .nested }
            pairs.append(pair)
        }
        return .pairs(pairs)
    }

    /// Returns a pair of a mapping; `nil` if its value is neither a scalar nor `{file: PATH}`.
    private static func pair(_ name: ConfigurationFile.LocatedText, _ value: Yams.Node) -> Pair? {
        if let text = ConfigurationFile.text(value) { return Pair(name: name, value: text) }
        guard let mapping = value.mapping, mapping.count == 1, let (key, path) = mapping.first,
            key.scalar?.string == fileKey, let text = ConfigurationFile.text(path)
        else { return nil }
        return Pair(name: name, value: text, isFile: true)
    }

    /// The key of the path of a file that holds a value.
    fileprivate static let fileKey = "file"
    /// The placeholder for a hidden value, which is not accepted as a value itself.
    static let redacted = "(redacted)"
}

extension RawSiteBlock.Value {
    /// Returns the value as one line of YAML; `isSecret` hides the values of a mapping, except for
    /// paths of files.
    func yaml(isSecret: Bool) -> String {
        switch self {
        case .scalar(let text): Configuration.yaml(text.text)
        case .list(let texts):
            "[" + texts.map { Configuration.yaml($0.text) }.joined(separator: ", ") + "]"
        case .pairs(let pairs):
            "{" + pairs.map { $0.yaml(isSecret: isSecret) }.joined(separator: ", ") + "}"
        case .nested: ""
        }
    }
}

extension RawSiteBlock.Pair {
    /// Returns the pair in flow style; `isSecret` hides its value.
    fileprivate func yaml(isSecret: Bool) -> String {
        let text = isSecret && !isFile ? RawSiteBlock.redacted : value.text
        let shown = Configuration.yaml(text)
        return Configuration.yaml(name.text) + ": "
            + (isFile ? "{\(RawSiteBlock.fileKey): \(shown)}" : shown)
    }
}

extension RawSiteBlock.Value {
    /// Returns the parsed value of a scalar.
    ///
    /// - Throws: an error if this is not a scalar or `read` returns `nil`.
    func scalar<Value>(_ read: (String) -> Value?) throws(SiteOptionError) -> Value {
        guard case .scalar(let text) = self else { throw wrongTypeError }
        guard let value = read(text.text) else { throw text.error() }
        return value
    }

    /// Returns the parsed values of a list, or of a single scalar.
    func elements<Value>(_ read: (String) -> Value?) throws(SiteOptionError) -> [Value] {
        var values: [Value] = []
        for text in try scalars() {
            guard let value = read(text.text) else { throw text.error() }
            values.append(value)
        }
        return values
    }

    /// Returns the pairs of a mapping, or of a list of `name=value`; a value as `{file: PATH}` is
    /// an error.
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

    /// The error of a value that has the wrong shape for its setting.
    var wrongTypeError: SiteOptionError { SiteOptionError(text: "", line: nil, reason: .wrongType) }

    /// Returns the texts of a list, or of a single scalar.
    func scalars() throws(SiteOptionError) -> [ConfigurationFile.LocatedText] {
        switch self {
        case .scalar(let text): [text]
        case .list(let texts): texts
        case .pairs, .nested: throw wrongTypeError
        }
    }
}

extension ConfigurationFile.LocatedText {
    /// Returns an error at this text.
    func error(_ reason: SiteOptionError.Reason = .malformed) -> SiteOptionError {
        SiteOptionError(text: text, line: line, reason: reason)
    }
}
