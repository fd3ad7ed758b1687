package import Ground
package import HTTPRules
import Telemetry

/// The settings of images, either of all or of those from some origins.
package struct ImageSettings: Hashable, Sendable {
    /// The settings, with the defaults for images.
    package var settings = SiteSettings.images
    /// The options given in this block itself as they are listed, in the order of ``SiteOption``.
    var shownOptions: [SiteBlock.Line] = []
    /// True if the operator has given, here or for all images, how long stale images are served
    /// while an origin fails.
    package var hasExplicitGrace = false

    /// Creates the defaults.
    package init() {}

    /// Creates settings from their parts.
    fileprivate init(
        settings: SiteSettings, shownOptions: [SiteBlock.Line], hasExplicitGrace: Bool
    ) {
        self.settings = settings
        self.shownOptions = shownOptions
        self.hasExplicitGrace = hasExplicitGrace
    }
}

/// The block of a configuration file for images that are requested by URL; its keys are those of a
/// site.
package struct ImageBlock: Hashable, Sendable {
    /// The settings for origins without settings of their own.
    package private(set) var all = ImageSettings()
    /// The settings for origins that have their own, completed with those of ``all``.
    package private(set) var origins: [Origin] = []

    /// The settings of images from the origins of one pattern.
    package struct Origin: Hashable, Sendable {
        /// The pattern of the origins.
        package let pattern: OriginPattern
        /// The settings.
        package var settings: ImageSettings

        /// The name of this block in faults.
        var subject: String { "images from \(pattern)" }
    }

    /// The key of the mapping of origins with settings of their own.
    static let originsKey = "origins"

    /// Creates the defaults, for a file without the block.
    init() {}

    /// Parses the block.
    ///
    /// - Parameters:
    ///   - texts: the options for all images.
    ///   - origins: the blocks of the origins with settings of their own.
    ///   - file: the name of the file.
    ///   - faults: receives the faults; at least one if the result is `nil`.
    init?(
        _ texts: [RawSiteBlock.Option], origins: [RawSiteBlock], in file: String,
        _ faults: inout [SiteFault]
    ) {
        let before = faults.count
        let all =
            Self.parse(texts, origin: nil, in: file, ImageSettings(), &faults)
            ?? ImageSettings()
        self.all = all
        var patterns: Set<OriginPattern> = []
        for text in origins {
            let name = text.pattern.text
            let source = SettingSource.file(name: file, line: text.pattern.line)
            let read = Self.parse(text.options, origin: name, in: file, all, &faults)
            guard let pattern = OriginPattern(name) else {
                faults.append(
                    SiteFault(
                        site: nil, imageOrigin: name, source: source, text: name, problem: .pattern)
                )
                continue
            }
            if patterns.contains(pattern) {
                faults.append(
                    SiteFault(
                        site: nil, imageOrigin: name, source: source, text: name,
                        problem: .duplicate))
            }
            guard let read else { continue }
            patterns.insert(pattern)
            self.origins.append(Origin(pattern: pattern, settings: read))
        }
        if faults.count > before { return nil }
    }

    /// Parses options on top of `defaults`; returns `nil` and adds at least one fault if anything
    /// is wrong.
    ///
    /// `origin` is the pattern of the origins as written, or `nil` for all images.
    private static func parse(
        _ texts: [RawSiteBlock.Option], origin: String?, in file: String,
        _ defaults: ImageSettings, _ faults: inout [SiteFault]
    ) -> ImageSettings? {
        var found: [SiteFault] = []
        let read = SiteBlock.parse(
            texts, of: nil, in: file,
            among: SiteOption.options(of: origin == nil ? .images : .imageOrigins),
            from: defaults.settings, &found)
        // Other statuses do not say whether there is an image.
        let wrong = read?.settings.negativeTTLs.first {
            !(400...499 ~= $0.status) || $0.status == 407 || StatusRules.isTransient($0.status)
        }
        if let wrong {
            let option = SiteOption.all.negativeTTL
            let line = texts.first { $0.key.text == option.name }?.key.line
            found.append(
                SiteFault(
                    site: nil, source: .file(name: file, line: line), text: "\(wrong.status)",
                    problem: .value(option, .unusableStatus)))
        }
        let codes = read?.settings.overriddenRequestFields.contains {
            String(decoding: $0.name, as: UTF8.self).lowercased() == "accept-encoding"
        }
        if codes == true {
            let option = SiteOption.all.setRequestFields
            let line = texts.first { $0.key.text == option.name }?.key.line
            found.append(
                SiteFault(
                    site: nil, source: .file(name: file, line: line), text: "Accept-Encoding",
                    problem: .value(option, .unsafeContentCoding)))
        }
        faults += found.map { $0.forImages(from: origin) }
        guard let read, found.isEmpty else { return nil }
        return ImageSettings(
            settings: read.settings, shownOptions: read.lines,
            hasExplicitGrace: defaults.hasExplicitGrace
                || read.lines.contains { $0.option == SiteOption.all.grace })
    }

    /// The options and values in flow style, without secrets.
    var shownOptions: [(name: String, yaml: String)] {
        var shown = all.shownOptions.map { ($0.option.name, $0.yaml) }
        if !origins.isEmpty {
            let blocks = origins.map { origin in
                let lines = origin.settings.shownOptions.map { "\($0.option.name): \($0.yaml)" }
                return Configuration.yaml("\(origin.pattern)")
                    + ": {\(lines.joined(separator: ", "))}"
            }
            shown.append((Self.originsKey, "{\(blocks.joined(separator: ", "))}"))
        }
        return shown
    }

    /// The options and values in one line, without secrets; empty if there are none.
    var text: String {
        let shown = shownOptions
        return shown.isEmpty
            ? ""
            : (["images"] + shown.map { "\($0.name): \($0.yaml)" }).joined(separator: ", ")
    }

    /// Reads the values of request fields that are given as files of their own, which only blocks
    /// in ``origins`` may have.
    mutating func readFieldFiles() throws(ConfigurationError) {
        for index in origins.indices {
            try origins[index].settings.settings.readFieldFiles(of: origins[index].subject)
        }
    }
}
