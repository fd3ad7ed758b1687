import NIOCore
import Telemetry
import Wire

extension Configuration {
    /// Every setting that was given, or is not as the table has it because of others, in the
    /// table's order, as lines of a file of settings that would give the same; each with a comment
    /// that says where it comes from.
    package var listing: [String] {
        let given = Setting.table.compactMap { setting -> String? in
            let name = setting.name
            let source = values.source(name)
            let texts = values.texts(name)
            let before = self.declaredValues.texts(name)
            if source == .builtIn, texts == before || before.isEmpty { return nil }
            let from =
                source == .builtIn ? "as the settings above demand" : source.text(for: name)
            // A file cannot name another.
            let start = name == .config ? "# " : ""
            return
                "\(start)\(name.rawValue): \(Self.yaml(texts, isList: setting.isList))  # \(from)"
        }
        return given + imageListing + siteListing
    }

    /// What images have settings of their own for.
    private var imageListing: [String] {
        let shown = values.images.shownOptions
        return shown.isEmpty
            ? []
            : ["\(ConfigurationFile.imagesKey):"] + shown.map { "  \($0.name): \($0.yaml)" }
    }

    /// The sites with settings of their own.
    private var siteListing: [String] {
        guard !values.siteBlocks.isEmpty else { return [] }
        var lines = ["\(ConfigurationFile.sitesKey):"]
        for site in values.siteBlocks {
            lines.append(
                "  \(Self.yaml("\(site.pattern)")):  # \(site.source.text(for: .site))")
            lines.append("    origin: \(site.origin)")
            lines += site.shownOptions.map { "    \($0.option.rawValue): \($0.yaml)" }
        }
        return lines
    }

    /// What the limit on descriptors of this process leaves to be desired; one line each.
    package var descriptorWarnings: [String] {
        DescriptorBudget(
            self, descriptors: DescriptorLimit.raise(),
            loops: loops ?? min(System.coreCount, EventLoopContext.countMax)
        ).warnings
    }

    private static func yaml(_ texts: [String], isList: Bool) -> String {
        let scalars = texts.map(yaml)
        guard isList, scalars.count != 1 else { return scalars.joined() }
        return "[" + scalars.joined(separator: ", ") + "]"
    }

    /// In quotes unless YAML can take it for nothing but a word.
    static func yaml(_ text: String) -> String {
        let isPlain =
            text.first.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "/") } ?? false
        let isWord = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "."), UInt8(ascii: "/"),
                UInt8(ascii: ":"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        return isPlain && isWord && !text.hasSuffix(":") ? text : quoted(text)
    }

    /// Two characters are escaped that `YAMLPrecheck` refuses even between quotes.
    private static func quoted(_ text: String) -> String {
        LogLine.quoted(text).replacing("&", with: "\\u0026").replacing("?", with: "\\u003F")
    }
}

extension Configuration {
    /// This program's version.
    package static let version = "0.1.0"

    /// This program and the libraries it is linked with, as they call themselves at run time: like
    /// `nuthatch 0.1.0 (OpenSSL 3.0.19 27 Jan 2026, nghttp2 1.52.0)`.
    package static var versionText: String {
        "nuthatch \(version) (\(LibraryVersions.openSSL), \(LibraryVersions.ngHTTP2))"
    }

    /// What `--help` says of the setting `name`, and what stands for its value in the synopsis.
    ///
    /// The name must be one of the table's.
    package static func help(for name: String) -> (text: String, placeholder: String) {
        guard let setting = SettingName(rawValue: name)?.setting else {
            preconditionFailure("\(name) is not a setting")
        }
        return (setting.help, setting.kind.placeholder)
    }

    /// What the values of a setting are, as far as a shell can offer them.
    package enum Completion: Hashable, Sendable {
        case file
        case directory
        case choices([String])
    }

    /// What a shell can offer for the setting `name`, which must be one of the table's; nil for
    /// nothing.
    package static func completion(for name: String) -> Completion? {
        guard let setting = SettingName(rawValue: name)?.setting else {
            preconditionFailure("\(name) is not a setting")
        }
        switch setting.kind {
        case .path: return setting.name == .cacheDir ? .directory : .file
        case .choice(let choices): return .choices(choices)
        default: return nil
        }
    }
}
