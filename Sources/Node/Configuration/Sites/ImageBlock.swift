package import Ground
package import HTTPRules
import Telemetry

/// What is said of images, of all or of those from some origins.
package struct ImageSettings: Hashable, Sendable {
    package var settings = SiteSettings.images
    /// In the order of ``SiteOption``.
    var shownOptions: [SiteBlock.Line] = []
    /// The operator has said how long they stand in for an origin that fails.
    var hasExplicitGrace = false
}

/// What a file says of images that are asked for by their URLs, with the keys of a site.
package struct ImageBlock: Hashable, Sendable {
    /// Of every origin that has no settings of its own.
    package private(set) var all = ImageSettings()
    /// Images from some origins, whose other settings are those of ``all``.
    package private(set) var origins: [Origin] = []

    package struct Origin: Hashable, Sendable {
        package let pattern: OriginPattern
        package var settings: ImageSettings

        /// It, in words of a fault.
        var subject: String { "images from \(pattern)" }
    }

    /// What stands before origins with settings of their own.
    static let originsKey = "origins"

    /// The keys that mean something for images.
    package static let options: [SiteOption] = [
        .defaultTTL, .ttlLimit, .negativeTTL, .objectLimit, .memoryShare, .diskShare, .cluster,
        .staleWhileRevalidate, .grace, .removeRequestFields, .clientTTL, .removeResponseFields,
        .setResponseFields, .tags,
    ]
    /// Those that origins have of their own.
    ///
    /// Clients name origins: what may be a secret is said to none that the operator has not named.
    package static let originOptions =
        options.filter { $0 != .memoryShare && $0 != .diskShare } + [.setRequestFields]

    /// The defaults, for a file that says nothing.
    init() {}

    /// Reads what `file` says; nil, and at least one fault, if anything is wrong.
    init?(
        _ texts: [RawSiteBlock.Option], origins: [RawSiteBlock], in file: String,
        _ faults: inout [SiteFault]
    ) {
        let before = faults.count
        let all =
            Self.parse(texts, origin: nil, in: file, among: Self.options, ImageSettings(), &faults)
            ?? ImageSettings()
        self.all = all
        for text in origins {
            let name = text.pattern.text
            let source = SettingSource.file(name: file, line: text.pattern.line)
            let read = Self.parse(
                text.options, origin: name, in: file, among: Self.originOptions, all, &faults)
            guard let pattern = OriginPattern(name) else {
                faults.append(
                    SiteFault(
                        site: nil, imageOrigin: name, source: source, text: name, problem: .pattern)
                )
                continue
            }
            if self.origins.contains(where: { $0.pattern == pattern }) {
                faults.append(
                    SiteFault(
                        site: nil, imageOrigin: name, source: source, text: name,
                        problem: .duplicate))
            }
            if let read { self.origins.append(Origin(pattern: pattern, settings: read)) }
        }
        if faults.count > before { return nil }
    }

    /// What settings come to where others are as in `defaults`; of `origin`, or of all if it is
    /// nil.
    private static func parse(
        _ texts: [RawSiteBlock.Option], origin: String?, in file: String,
        among options: [SiteOption], _ defaults: ImageSettings, _ faults: inout [SiteFault]
    ) -> ImageSettings? {
        var found: [SiteFault] = []
        let read = SiteBlock.parse(
            texts, of: nil, in: file, among: options, from: defaults.settings, &found)
        // An answer that is none of these says nothing of whether there is an image.
        let wrong = read?.settings.negativeTTLs.first {
            !(400...499 ~= $0.status) || $0.status == 407 || StatusRules.isTransient($0.status)
        }
        if let wrong {
            let line = texts.first { $0.key.text == SiteOption.negativeTTL.rawValue }?.key.line
            found.append(
                SiteFault(
                    site: nil, source: .file(name: file, line: line), text: "\(wrong.status)",
                    problem: .value(.negativeTTL, .unusableStatus)))
        }
        let codes = read?.settings.overriddenRequestFields.contains {
            String(decoding: $0.name, as: UTF8.self).lowercased() == "accept-encoding"
        }
        if codes == true {
            let line = texts.first { $0.key.text == SiteOption.setRequestFields.rawValue }?.key.line
            found.append(
                SiteFault(
                    site: nil, source: .file(name: file, line: line), text: "Accept-Encoding",
                    problem: .value(.setRequestFields, .unsafeContentCoding)))
        }
        faults += found.map { $0.forImages(from: origin) }
        guard let read, found.isEmpty else { return nil }
        return ImageSettings(
            settings: read.settings, shownOptions: read.lines,
            hasExplicitGrace: defaults.hasExplicitGrace
                || read.lines.contains { $0.option == .grace })
    }

    /// All that was said but secrets: keys and values in flow style.
    var shownOptions: [(name: String, yaml: String)] {
        var shown = all.shownOptions.map { ($0.option.rawValue, $0.yaml) }
        if !origins.isEmpty {
            let blocks = origins.map { origin in
                let lines = origin.settings.shownOptions.map { "\($0.option.rawValue): \($0.yaml)" }
                return Configuration.yaml("\(origin.pattern)")
                    + ": {\(lines.joined(separator: ", "))}"
            }
            shown.append((Self.originsKey, "{\(blocks.joined(separator: ", "))}"))
        }
        return shown
    }

    /// The same in one line; empty if that is nothing.
    var text: String {
        let shown = shownOptions
        return shown.isEmpty
            ? ""
            : (["images"] + shown.map { "\($0.name): \($0.yaml)" }).joined(separator: ", ")
    }

    /// Fills in the values of fields that stand in files of their own.
    mutating func readFieldFiles() throws(ConfigurationError) {
        for index in origins.indices {
            try origins[index].settings.settings.readFieldFiles(of: origins[index].subject)
        }
    }
}

/// What an answer has to be that was asked for as an image.
struct ImageRules: Sendable {
    /// What is taken for an image, and what is served beside.
    var types = ImageMediaTypes()
    /// Pixels of the largest image that is served; nil for no limit.
    var pixelsMax: UInt64?
    /// Images of pixels with a Content-Encoding are served, unseen.
    var acceptsContentCoding = false
    /// Freshness where the origin names none (RFC 9111 §4.2.2 leaves it to the cache).
    var defaultTTL = Interval.seconds(3600)
}
