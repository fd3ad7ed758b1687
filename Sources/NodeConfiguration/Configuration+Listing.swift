package import Admin
package import Cluster
import FoundationEssentials
import NIOCore
import Telemetry
import Wire

extension Configuration {
    /// The settings that were given, as lines of a configuration file, with placeholders for values
    /// that may be secret.
    ///
    /// Settings of the node come first, in the table's order; a default that was lowered to fit
    /// other settings is listed too. Each of them and each site has a comment that names its
    /// source.
    package var listing: [String] {
        let given = Setting.table.compactMap { setting -> String? in
            let source = values.source(setting)
            let texts = values.texts(setting)
            let before = self.declaredValues.texts(setting)
            if source == .builtIn, texts == before || before.isEmpty { return nil }
            let from =
                source == .builtIn ? "derived from the settings above" : source.text
            // A file cannot name another.
            let start = setting == Setting.node.config.setting ? "# " : ""
            return
                "\(start)\(setting.name): \(Self.yaml(texts, isList: setting.isList))  # \(from)"
        }
        return given + imageListing + siteListing
    }

    /// The listed lines of the settings for images; empty if none was given.
    private var imageListing: [String] {
        let shown = values.images.shownOptions
        return shown.isEmpty
            ? []
            : ["\(ConfigurationFile.imagesKey):"] + shown.map { "  \($0.name): \($0.yaml)" }
    }

    /// The listed lines of the sites that have settings of their own.
    private var siteListing: [String] {
        guard !values.siteBlocks.isEmpty else { return [] }
        var lines = ["\(ConfigurationFile.sitesKey):"]
        for site in values.siteBlocks {
            lines.append(
                "  \(Self.yaml("\(site.pattern)")):  # \(site.source.text)")
            lines.append("    origin: \(site.origin)")
            lines += site.shownOptions.map { "    \($0.option.name): \($0.yaml)" }
        }
        return lines
    }

    /// The largest number of event loops, whose numbers are bits of a 64-bit word.
    package static let loopsMax = 64

    /// The number of event loops: the configured one, or one per core up to ``loopsMax``.
    package var loopCount: Int { self.loops ?? min(System.coreCount, Self.loopsMax) }

    /// The warnings about a descriptor limit that is too low for the settings, one line each.
    ///
    /// Reading this property raises the process's soft limit to the hard one.
    package var descriptorWarnings: [String] {
        DescriptorBudget(
            self, descriptors: DescriptorLimit.raise(), loops: loopCount
        ).warnings
    }

    /// Returns the values of one setting in YAML's flow style; a list with a single value is
    /// written as a scalar.
    static func yaml(_ texts: [String], isList: Bool) -> String {
        let scalars = texts.map(yaml)
        guard isList, scalars.count != 1 else { return scalars.joined() }
        return "[" + scalars.joined(separator: ", ") + "]"
    }

    /// Returns the text as a YAML scalar, quoted unless YAML can only read it as a plain word.
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

    /// Returns the text in quotes, with the two characters escaped that `YAMLPrecheck` rejects even
    /// between quotes.
    private static func quoted(_ text: String) -> String {
        text.jsonQuoted.replacing("&", with: "\\u0026").replacing("?", with: "\\u003F")
    }
}

extension Configuration {
    /// The version of this program.
    package static let version = "0.2.0"

    /// The name of this machine.
    package static let hostName = ProcessInfo.processInfo.hostName

    /// The name and version of this program and the run-time versions of its libraries, as in
    /// `nuthatch 0.2.0 (OpenSSL 3.0.19 27 Jan 2026, nghttp2 1.52.0)`.
    package static var versionText: String {
        "nuthatch \(version) (\(OpenSSLLibrary.version), \(NGHTTP2Library.version))"
    }
}

extension Configuration {
    /// The settings that must be the same on all nodes of a cluster, as peers compare them.
    package var sharedSettings: [SharedSetting] {
        Setting.table.filter(\.isSameOnAllNodes).map {
            SharedSetting($0.name, texts: values.texts($0))
        }
    }

    /// The settings in force of the node, of images, and of the sites with blocks of their own, as
    /// a document of the admin port; values that may be secret are hidden.
    package var document: ConfigurationDocument {
        var document = ConfigurationDocument()
        document.entries = Setting.table.map { setting in
            ConfigurationDocument.Entry(
                setting, values.texts(setting), source: values.source(setting).text)
        }
        document.images = NamedTexts(values.images.shownOptions.map { ($0.name, $0.yaml) })
        document.sites = values.siteBlocks.map { site in
            ConfigurationDocument.Site(
                "\(site.pattern)", origin: "\(site.origin)",
                options: NamedTexts(site.shownOptions.map { ($0.option.name, $0.yaml) }))
        }
        return document
    }
}
