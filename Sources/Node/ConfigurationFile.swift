import Telemetry
import Yams

/// The settings that a YAML file gives, as texts: scalars are never read as numbers or booleans.
///
/// So `access-log: off` is the word `off`, and `memory-entries: 010` is not octal.
struct ConfigurationFile {
    /// One text and the line it stands on, from 1.
    struct Text {
        let text: String
        let line: Int?
    }

    /// What one key was given.
    enum Given {
        case scalar(Text)
        case list([Text], line: Int?)
        /// A mapping, or a list inside a list.
        case nested(line: Int?)
    }

    let name: String
    private(set) var settings: [SettingName: Given] = [:]
    /// Sites with settings of their own, in the order of the file.
    private(set) var sites: [SiteBlock] = []
    private(set) var images = ImageBlock()
    /// Keys that are no settings of a file; no more than can be read.
    private(set) var faults: [ConfigurationError] = []

    private static let faultsMax = 100
    /// The key of the mapping of sites.
    static let sitesKey = "sites"
    /// The key of the settings of images.
    static let imagesKey = "images"

    /// Reads a file of one mapping, or of nothing at all.
    init(name: String, text: String) throws(ConfigurationError) {
        self.name = name
        try ConfigurationText.check(text, in: name)
        guard let root = try Self.compose(name, text) else { return }
        if let scalar = root.scalar, scalar.string.isEmpty, scalar.style == .plain { return }
        guard let mapping = root.mapping else {
            throw .malformedFile(
                name, line: root.mark?.line, reason: "the file is not a mapping of keys to values")
        }
        for (key, value) in mapping where faults.count < Self.faultsMax {
            guard let text = key.scalar?.string else {
                throw .malformedFile(
                    name, line: key.mark?.line, reason: "a key is not a plain word")
            }
            if text == Self.sitesKey {
                try read(sites: value)
                continue
            }
            if text == Self.imagesKey {
                try read(images: value)
                continue
            }
            switch SettingName(rawValue: text) {
            case .config?:
                faults.append(.notInFile(.config, file: name, line: key.mark?.line))
            case let setting?:
                settings[setting] = Self.given(value)
            case nil:
                faults.append(
                    .unknownKey(
                        text, file: name, line: key.mark?.line,
                        nearest: SettingName.nearest(to: text)))
            }
        }
    }

    private mutating func read(sites value: Yams.Node) throws(ConfigurationError) {
        guard let texts = SiteText.all(under: value) else {
            throw .malformedFile(
                name, line: value.mark?.line,
                reason: "\(Self.sitesKey) is not a mapping of hosts to URLs or to settings"
            )
        }
        var siteFaults: [SiteFault] = []
        for text in texts where siteFaults.count < Self.faultsMax {
            if let site = SiteBlock(text, in: name, &siteFaults) { sites.append(site) }
        }
        faults += siteFaults.map(ConfigurationError.site)
    }

    private mutating func read(images value: Yams.Node) throws(ConfigurationError) {
        guard var options = SiteText.options(of: value) else {
            throw .malformedFile(
                name, line: value.mark?.line,
                reason: "\(Self.imagesKey) is not a mapping of settings")
        }
        options.removeAll { $0.key.text == ImageBlock.originsKey }
        var origins: [SiteText] = []
        if let node = value.mapping?[ImageBlock.originsKey] {
            guard let texts = SiteText.all(under: node) else {
                throw .malformedFile(
                    name, line: node.mark?.line,
                    reason: "\(ImageBlock.originsKey) of \(Self.imagesKey) is not a mapping of "
                        + "patterns to settings")
            }
            origins = texts
        }
        var found: [SiteFault] = []
        if let block = ImageBlock(options, origins: origins, in: name, &found) { images = block }
        faults += found.map(ConfigurationError.site)
    }

    private static func given(_ value: Yams.Node) -> Given {
        if let text = text(value) { return .scalar(text) }
        guard let sequence = value.sequence else { return .nested(line: value.mark?.line) }
        var texts: [Text] = []
        for item in sequence {
            guard let text = text(item) else { return .nested(line: item.mark?.line) }
            texts.append(text)
        }
        return .list(texts, line: value.mark?.line)
    }

    /// The text of a scalar and its line; nil for anything else.
    static func text(_ node: Yams.Node) -> Text? {
        node.scalar.map { Text(text: $0.string, line: node.mark?.line) }
    }

    private static func compose(
        _ name: String, _ text: String
    ) throws(ConfigurationError) -> Yams.Node? {
        do {
            // Without rules that guess a scalar's type, and without looking into the environment.
            return try Yams.compose(yaml: text, .basic, .default, .utf8)
        } catch let error as YamlError {
            throw malformed(name, error)
        } catch {
            throw .malformedFile(name, line: nil, reason: "\(error)")
        }
    }

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
                reason: keys.sorted().prefix(3).map { String($0.prefix(80)).onOneLine }
                    .joined(separator: ", ") + " is given more than once")
        default:
            .malformedFile(name, line: nil, reason: "the file is not YAML")
        }
    }
}
