import Ground
import HTTPRules
import Telemetry

/// One site as it was given, with what was said of it.
struct SiteBlock: Hashable, Sendable {
    /// A setting of the site as it can be written: its key and its value, in flow style.
    struct Line: Hashable, Sendable {
        var option: SiteOption
        var yaml: String
    }

    var pattern: SitePattern
    var origin: BaseURL
    var settings = SiteSettings()
    /// In the order of ``SiteOption``, the origin not among them.
    var lines: [Line] = []
    var source: SettingSource

    /// The site and all that was said of it, in one line.
    var text: String {
        (["\(pattern)=\(origin)"] + lines.map { "\($0.option.rawValue): \($0.yaml)" })
            .joined(separator: ", ")
    }

    /// The first setting that says whom to believe over TLS; nil if there is none.
    var trustOption: SiteOption? {
        if settings.originCAFile != nil { return .originCA }
        return settings.originPins.isEmpty ? nil : .originPins
    }

    var site: Site { Site(pattern, origin: origin, settings: settings) }
}

extension ConfigurationValues {
    /// More would make the table of metrics larger than what reads it expects.
    static let sitesMax = 1000

    /// Every site: those of the setting `site`, then those with settings of their own.
    var sites: [SiteBlock] {
        let source = source(.site)
        return plainSites(.site).map {
            SiteBlock(pattern: $0.pattern, origin: $0.origin, source: source)
        } + siteBlocks
    }

    /// Sites of one pattern, too many sites, and settings of sites that do not fit the node's.
    func siteFaults() -> [ConfigurationError] {
        let sites = sites
        var faults: [ConfigurationError] = []
        if sites.count > Self.sitesMax { faults.append(.tooManySites(sites.count)) }
        var first: [SitePattern: SettingSource] = [:]
        for site in sites {
            if let other = first[site.pattern] {
                faults.append(.siteTwice(site.pattern, from: site.source, and: other))
            }
            first[site.pattern] = site.source
            if site.settings.isSigned, path(.signingKeyFile) == nil {
                faults.append(.siteWithoutKeys(site.pattern, from: site.source))
            }
            if !site.origin.isSecure, let option = site.trustOption {
                faults.append(.siteTrustUnused(site.pattern, option, from: site.source))
            }
            if let bytes = site.settings.objectBytesMax, bytes > UInt64(self.bytes(.objectLimit)) {
                faults.append(
                    .siteAbove(
                        site.pattern, .objectLimit, SizeText.render(bytes), from: site.source,
                        limit: .objectLimit,
                        SizeText.render(UInt64(self.bytes(.objectLimit)))))
            }
        }
        return faults
    }
}
