package import Ground

/// One site: what it answers to, where its answers come from, and what its operator wants.
///
/// A class, so that handing it on costs one count and not one for each of its lists. It never
/// changes; a change of settings makes new sites.
package final class Site: Sendable {
    package let pattern: SitePattern
    package let origin: BaseURL
    package let settings: SiteSettings
    /// What the site is called in metrics and logs.
    package let name: String
    /// `//` and ``name``: how the keys of its answers begin; empty where that depends on Host.
    let keyPrefix: [UInt8]

    package init(_ pattern: SitePattern, origin: BaseURL, settings: SiteSettings = SiteSettings()) {
        self.pattern = pattern
        self.origin = origin
        self.settings = settings
        name = pattern.description
        keyPrefix = pattern.keyPrefix
    }
}

extension SitePattern {
    /// How the keys of a site's answers begin; empty where that depends on Host.
    var keyPrefix: [UInt8] { self == .catchAll ? [] : Array("//\(self)".utf8) }
}

extension Site: Equatable {
    package static func == (left: Site, right: Site) -> Bool {
        left.pattern == right.pattern && left.origin == right.origin
            && left.settings == right.settings
    }
}
