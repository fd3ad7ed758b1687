import Telemetry
import Yams

/// The settings of a YAML file, as texts: scalars are never read as numbers or booleans.
///
/// So `access-log: off` is the word `off`, and `memory-entries: 010` is not octal.
struct ConfigurationFile {
    /// A text and its line, counted from 1.
    struct LocatedText {
        let text: String
        let line: Int?
    }

    /// The value of a key.
    enum FileValue {
        case scalar(LocatedText)
        case list([LocatedText], line: Int?)
        /// A mapping, or a list inside a list.
        case nested(line: Int?)
    }

    /// The name of the file as the operator wrote it.
    let name: String
    /// The values of the node's settings.
    private(set) var settings: [Setting: FileValue] = [:]
    /// The sites with settings of their own, in the order of the file.
    private(set) var sites: [SiteBlock] = []
    /// The settings of images.
    private(set) var images = ImageBlock()
    /// The faults in keys and sites; their number is limited.
    private(set) var errors: [ConfigurationError] = []

    /// The number of faults after which reading ends.
    private static let errorsMax = 100
    /// The key of the mapping of sites.
    static let sitesKey = "sites"
    /// The key of the settings of images.
    static let imagesKey = "images"

    /// Parses a file that is one mapping or empty.
    ///
    /// - Throws: a fault of the file as a whole; faults of single keys are in ``errors``.
    init(name: String, text: String) throws(ConfigurationError) {
        self.name = name
        try YAMLPrecheck.check(text, in: name)
        guard let root = try Self.compose(name, text) else { return }
        if let scalar = root.scalar, scalar.string.isEmpty, scalar.style == .plain { return }
        guard let mapping = root.mapping else {
            throw .malformedFile(
                name, line: root.mark?.line, reason: "the file is not a mapping of keys to values")
        }
        for (key, value) in mapping where errors.count < Self.errorsMax {
            guard let text = key.scalar?.string else {
                throw .malformedFile(
                    name, line: key.mark?.line, reason: "a key is not plain text")
            }
            if text == Self.sitesKey {
                try read(sites: value)
                continue
            }
            if text == Self.imagesKey {
                try read(images: value)
                continue
            }
            guard let setting = Setting.named(text) else {
                errors.append(
                    .unknownKey(
                        text, file: name, line: key.mark?.line,
                        nearest: Setting.nearest(to: text)))
                continue
            }
            if setting == Setting.node.config.setting {
                errors.append(.notAllowedInFile(setting, file: name, line: key.mark?.line))
            } else {
                settings[setting] = Self.value(value)
            }
        }
    }

    /// Reads the mapping under ``sitesKey``; sites with faults are left out.
    private mutating func read(sites value: Yams.Node) throws(ConfigurationError) {
        guard let texts = RawSiteBlock.sites(under: value) else {
            throw .malformedFile(
                name, line: value.mark?.line,
                reason: "\(Self.sitesKey) is not a mapping of hosts to URLs or to settings"
            )
        }
        var siteFaults: [SiteFault] = []
        for text in texts where siteFaults.count < Self.errorsMax {
            if let site = SiteBlock(text, in: name, &siteFaults) { sites.append(site) }
        }
        errors += siteFaults.map(ConfigurationError.invalidSite)
    }

    /// Reads the mapping under ``imagesKey``; with any fault ``images`` keeps the defaults.
    private mutating func read(images value: Yams.Node) throws(ConfigurationError) {
        guard var options = RawSiteBlock.options(of: value) else {
            throw .malformedFile(
                name, line: value.mark?.line,
                reason: "\(Self.imagesKey) is not a mapping of settings")
        }
        options.removeAll { $0.key.text == ImageBlock.originsKey }
        var origins: [RawSiteBlock] = []
        if let node = value.mapping?[ImageBlock.originsKey] {
            guard let texts = RawSiteBlock.sites(under: node) else {
                throw .malformedFile(
                    name, line: node.mark?.line,
                    reason: "\(ImageBlock.originsKey) of \(Self.imagesKey) is not a mapping of "
                        + "patterns to settings")
            }
            origins = texts
        }
        var found: [SiteFault] = []
        if let block = ImageBlock(options, origins: origins, in: name, &found) { images = block }
        errors += found.map(ConfigurationError.invalidSite)
    }

    /// Returns the value of a node of a setting.
    private static func value(_ value: Yams.Node) -> FileValue {
        if let text = text(value) { return .scalar(text) }
        guard let sequence = value.sequence else { return .nested(line: value.mark?.line) }
        var texts: [LocatedText] = []
        for item in sequence {
            guard let text = text(item) else { return .nested(line: item.mark?.line) }
            texts.append(text)
        }
        return .list(texts, line: value.mark?.line)
    }

    /// Returns the text and line of a scalar; `nil` for any other node.
    static func text(_ node: Yams.Node) -> LocatedText? {
        node.scalar.map { LocatedText(text: $0.string, line: node.mark?.line) }
    }

    /// Parses YAML into nodes; returns `nil` for a text without a document.
    private static func compose(
        _ name: String, _ text: String
    ) throws(ConfigurationError) -> Yams.Node? {
        do {
            // No rules that guess a scalar's type, and no expansion of environment variables.
            return try Yams.compose(yaml: text, .basic, .default, .utf8)
        } catch let error as YamlError {
            throw malformed(name, error)
        } catch {
            throw .malformedFile(name, line: nil, reason: "\(error)")
        }
    }

    /// Returns the fault for an error of the YAML parser.
    private static func malformed(_ name: String, _ error: YamlError) -> ConfigurationError {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            .malformedFile(name, line: mark.line, reason: problem)
        case .reader(let problem, _, _, _):
            .malformedFile(name, line: nil, reason: problem)
        case .duplicatedKeysInMapping(let keys, let first):
            .malformedFile(
                name, line: first.mark.line,
                reason: keys.sorted().prefix(3).map { String($0.prefix(80)).singleLine }
                    .joined(separator: ", ") + " is given more than once")
        default:
            .malformedFile(name, line: nil, reason: "the file is not YAML")
        }
    }
}

/// The check of a configuration file's text before it is parsed as YAML.
///
/// It rejects constructs that are useless here and let a short text cost the parser unbounded time
/// or memory. An anchor stands for everything that it names wherever an alias repeats it, and a key
/// that is itself a collection is traversed again at every level above it.
enum YAMLPrecheck {
    /// The largest file in bytes; nothing beyond is read.
    static let bytesMax = 1 << 20

    /// Checks a text.
    ///
    /// - Throws: the first rejected construct, with its line, or the fault of a text above
    ///   ``bytesMax``.
    static func check(_ text: String, in file: String) throws(ConfigurationError) {
        guard text.utf8.count <= bytesMax else {
            throw .unreadableFile(file, reason: tooLarge)
        }
        var line = 1
        var before = UInt8(ascii: "\n")
        var isComment = false
        var lineHasOnlyBlanks = true
        var utf8 = text.utf8[...]
        while let byte = utf8.popFirst() {
            defer { before = byte }
            if endsLine(byte, before: before) {
                if byte == UInt8(ascii: "\n") { line += 1 }
                isComment = false
                lineHasOnlyBlanks = true
                continue
            }
            // Only comments of whole lines are skipped: after a value, “#” may be a part of it.
            if byte == UInt8(ascii: "#"), lineHasOnlyBlanks { isComment = true }
            if byte != UInt8(ascii: " ") { lineHasOnlyBlanks = false }
            guard !isComment, let reason = reason(byte, before: before, after: utf8.first) else {
                continue
            }
            throw .malformedFile(file, line: line, reason: reason)
        }
    }

    /// The reason for the rejection of a file above ``bytesMax``.
    static let tooLarge = "it is larger than \(bytesMax >> 20) MiB"

    /// Returns the reason for rejecting `byte` between its neighbours; `nil` if it is allowed.
    private static func reason(_ byte: UInt8, before: UInt8, after: UInt8?) -> String? {
        switch byte {
        case UInt8(ascii: "&"):
            guard !isWord(before), let after, isWord(after) else { return nil }
            return "anchors (&) are not supported; repeat the value"
        case UInt8(ascii: "?"):
            return beginsToken(after: before) ? "keys marked with ? are not supported" : nil
        default: return nil
        }
    }

    /// Returns true for the line breaks of YAML 1.1: LF, CR, and the last bytes of NEL, LS and PS.
    private static func endsLine(_ byte: UInt8, before: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "\n"), UInt8(ascii: "\r"): true
        case 0x85: before == 0xC2
        case 0xA8, 0xA9: before == 0x80
        default: false
        }
    }

    /// Returns true if the character after `byte` may begin a token.
    private static func beginsToken(after byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"),
            UInt8(ascii: "["), UInt8(ascii: "{"), UInt8(ascii: ","), UInt8(ascii: "]"),
            UInt8(ascii: "}"), UInt8(ascii: "\""), UInt8(ascii: "'"), UInt8(ascii: ":"),
            0x80...:
            true
        default: false
        }
    }

    /// Returns true for the bytes of an anchor's name.
    private static func isWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }
}
