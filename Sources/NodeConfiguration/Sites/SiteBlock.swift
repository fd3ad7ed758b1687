import Ground
import HTTPRules
import Telemetry

/// A configured site with its settings and their source.
struct SiteBlock: Hashable, Sendable {
    /// A listed setting of a site: its key, and its value in flow style without secrets.
    struct Line: Hashable, Sendable {
        var option: SiteOption
        var yaml: String
    }

    /// The host that the site is for.
    var pattern: SitePattern
    /// The base of the URLs that its responses come from.
    var origin: BaseURL
    /// The settings.
    var settings = SiteSettings()
    /// The listed options in the order of ``SiteOption``, without the origin.
    var shownOptions: [Line] = []
    /// The source that has given the site.
    var source: SettingSource

    /// The site and its settings in one line, without secrets.
    var text: String {
        (["\(pattern)=\(origin)"] + shownOptions.map { "\($0.option.name): \($0.yaml)" })
            .joined(separator: ", ")
    }

    /// The first option that configures trust over TLS; `nil` if there is none.
    var trustOption: SiteOption? {
        if settings.originCAFile != nil { return SiteOption.all.originCA }
        return settings.originPins.isEmpty ? nil : SiteOption.all.originPins
    }

    /// The name of this site in faults.
    var subject: String { "site \(pattern) (from \(source.text))" }

    /// The site as the node uses it.
    var site: Site { Site(pattern, origin: origin, settings: settings) }
}

extension SiteSettings {
    /// Reads the values of request fields that are given as files of their own, without the end of
    /// the line.
    ///
    /// - Parameter whose: the subject of these settings in a fault.
    /// - Throws: the fault of a file that cannot be used.
    mutating func readFieldFiles(of whose: String) throws(ConfigurationError) {
        for index in overriddenRequestFields.indices {
            guard let file = overriddenRequestFields[index].file else { continue }
            let name = String(decoding: overriddenRequestFields[index].name, as: UTF8.self)
            overriddenRequestFields[index].value = try Self.fieldValue(in: file, of: name, whose)
        }
    }

    /// Reads the value of a field from a file.
    private static func fieldValue(
        in file: String, of name: String, _ whose: String
    ) throws(ConfigurationError) -> [UInt8] {
        func fault(_ reason: String) -> ConfigurationError {
            .fieldFile(whose, name: name, file: file, reason: reason)
        }
        var bytes = try ConfigurationSources.read(file, orThrow: fault)
        if bytes.last == 0x0A { bytes.removeLast() }
        if bytes.last == 0x0D { bytes.removeLast() }
        guard !bytes.isEmpty else { throw fault("it is empty") }
        guard SiteText.isFieldValue(bytes) else { throw fault("it is not a field value") }
        return bytes
    }
}

extension ConfigurationValues {
    /// Reads the values of request fields that are given as files of their own, of sites and
    /// images.
    mutating func readFieldFiles() throws(ConfigurationError) {
        for index in siteBlocks.indices {
            try siteBlocks[index].settings.readFieldFiles(of: siteBlocks[index].subject)
        }
        try images.readFieldFiles()
    }

    /// The largest number of sites, which bounds the size of the metrics.
    static let sitesMax = 1000

    /// All sites: those of the setting `site`, then those with settings of their own.
    var sites: [SiteBlock] {
        let source = source(Setting.origins.site.setting)
        return self.site.map {
            SiteBlock(pattern: $0.pattern, origin: $0.origin, source: source)
        } + siteBlocks
    }

    /// The settings of sites and images in one line each, without secrets.
    var siteTexts: [String] { sites.map(\.text) + [images.text].filter { !$0.isEmpty } }

    /// Returns the faults of duplicate sites, of too many sites, and of settings of sites and
    /// images that conflict with the node's or with a site's origin.
    func siteFaults() -> [ConfigurationError] {
        let sites = sites
        var faults: [ConfigurationError] = []
        if sites.count > Self.sitesMax { faults.append(.tooManySites(sites.count)) }
        var first: [SitePattern: SettingSource] = [:]
        for site in sites {
            if let other = first[site.pattern] {
                faults.append(.duplicateSite(site.pattern, from: site.source, and: other))
            }
            first[site.pattern] = site.source
            if site.settings.requiresSignature, self.signingKeyFile == nil {
                faults.append(.missingSigningKeys(site.pattern, from: site.source))
            }
            if !site.origin.isSecure, let option = site.trustOption {
                faults.append(.unusedSiteTrust(site.pattern, option, from: site.source))
            }
            faults += objectFault(site.settings, site.subject)
        }
        faults += objectFault(images.all.settings, "images")
        for origin in images.origins
        where origin.settings.settings.objectBytesMax != images.all.settings.objectBytesMax {
            faults += objectFault(origin.settings.settings, origin.subject)
        }
        return faults
    }

    /// Returns the fault of a body limit above the node's.
    private func objectFault(_ settings: SiteSettings, _ whose: String) -> [ConfigurationError] {
        let limit = UInt64(self.objectLimit)
        guard let bytes = settings.objectBytesMax, bytes > limit else { return [] }
        return [
            .siteValueAboveLimit(
                whose, SiteOption.all.objectLimit, SizeText.format(bytes),
                limit: Setting.memory.objectLimit.setting, SizeText.format(limit))
        ]
    }
}

extension SiteBlock {
    /// Parses the block of a site; returns `nil` and adds at least one fault if anything is wrong.
    init?(_ text: RawSiteBlock, in file: String, _ faults: inout [SiteFault]) {
        let site = text.pattern.text
        let line = text.pattern.line
        func fault(_ problem: SiteFault.Problem, _ text: String) -> SiteFault {
            SiteFault(
                site: site, source: .file(name: file, line: line), text: text, problem: problem)
        }
        let pattern = SitePattern(site)
        if pattern == nil { faults.append(fault(.pattern, site)) }
        let read = Self.parse(
            text.options, of: site, in: file, among: SiteOption.options(of: .site),
            from: SiteSettings(),
            &faults)
        if !text.options.contains(where: { $0.key.text == SiteOption.all.origin.name }) {
            faults.append(fault(.missingOrigin, ""))
        }
        guard let read, let pattern, let origin = read.origin else { return nil }
        self.init(
            pattern: pattern, origin: origin, settings: read.settings, shownOptions: read.lines,
            source: .file(name: file, line: line))
    }

    /// The outcome of parsing options.
    typealias ParsedSettings = (origin: BaseURL?, settings: SiteSettings, lines: [Line])

    /// Parses options on top of `defaults`; returns `nil` and adds at least one fault if anything
    /// is wrong.
    ///
    /// - Parameters:
    ///   - texts: the options.
    ///   - site: the site as written; `nil` for images.
    ///   - file: the name of the file.
    ///   - options: the options that are allowed.
    ///   - defaults: the settings where no option is given.
    ///   - faults: receives the faults.
    /// - Returns: the settings with the options applied; `nil` with any fault.
    static func parse(
        _ texts: [RawSiteBlock.Option], of site: String?, in file: String,
        among options: [SiteOption],
        from defaults: SiteSettings, _ faults: inout [SiteFault]
    ) -> ParsedSettings? {
        func fault(_ problem: SiteFault.Problem, _ text: String, _ line: Int?) -> SiteFault {
            SiteFault(
                site: site, source: .file(name: file, line: line), text: text, problem: problem)
        }
        let before = faults.count
        var read: ParsedSettings = (nil, defaults, [])
        for (key, value) in texts {
            guard let option = options.first(where: { $0.name == key.text }) else {
                let nearest = SiteOption.nearest(to: key.text, among: options)
                faults.append(fault(.unknownKey(nearest: nearest), key.text, key.line))
                continue
            }
            do throws(SiteOptionError) {
                if option == SiteOption.all.origin {
                    read.origin = try Self.origin(value)
                } else {
                    try option.apply(value, &read.settings)
                    read.lines.append(
                        Line(option: option, yaml: value.yaml(isSecret: option.isSecret)))
                }
            } catch {
                faults.append(
                    fault(.value(option, error.reason), error.text, error.line ?? key.line))
            }
        }
        guard faults.count == before else { return nil }
        let lines = read.lines
        read.lines = SiteOption.table.flatMap { option in
            lines.filter { $0.option == option }
        }
        return read
    }

    /// Parses the origin of a site.
    private static func origin(_ value: RawSiteBlock.Value) throws(SiteOptionError) -> BaseURL {
        guard case .scalar(let text) = value else { throw value.wrongTypeError }
        do throws(BaseURL.Problem) {
            return try BaseURL(text.text)
        } catch {
            throw text.error()
        }
    }
}
