package import HTTPRules
package import Telemetry

/// What is wrong with the settings of one site, or of images.
package struct SiteFault: Error, Hashable, CustomStringConvertible {
    package enum Problem: Hashable, Sendable {
        /// What stands before the settings is no host.
        case pattern
        /// A key that is no setting of a site; the nearest, if one is near.
        case unknownKey(nearest: SiteOption?)
        case noOrigin
        /// The value of this setting is refused.
        case value(SiteOption, SiteRefusal.Reason)
    }

    /// The site as it was written; nil for images.
    package let site: String?
    package let source: SettingSource
    /// What was refused; empty if the fault is not in a text.
    package let text: String
    package let problem: Problem

    /// One line, control bytes escaped.
    package var description: String {
        let whose = site.map { "site " + String($0.prefix(200)).onOneLine } ?? "images"
        let place = "(from \(source.text(for: .site)))"
        let quoted = text.withoutUserinfo.quoted(limit: 80)
        switch problem {
        case .pattern:
            return "\(quoted) \(place) is no host of a site; allowed: *, HOST or HOST:PORT, "
                + "e.g. www.example.com"
        case .unknownKey(let nearest):
            let hint = nearest.map { "; perhaps \($0.rawValue)" } ?? ""
            guard site != nil else {
                let allowed = ImageBlock.options.map(\.rawValue).joined(separator: ", ")
                return "\(whose): \(quoted) \(place) is not a setting of images\(hint); "
                    + "allowed: \(allowed)"
            }
            return "\(whose): \(quoted) \(place) is not a setting of a site" + hint
        case .noOrigin:
            return "\(whose) \(place): no origin is given; "
                + "allowed: \(SiteOption.origin.allowed), e.g. \(SiteOption.origin.example)"
        case .value(let option, let reason):
            let what =
                switch reason {
                case .malformed: "\(quoted) is refused"
                case .shape: "a value of another shape is needed here"
                case .repeated: "\(quoted) is given twice"
                case .tooMany: "\(quoted) is one too many"
                case .fieldValue: "the value of \(quoted) is refused"
                case .original(let fault): "\(quoted) is refused \(fault)"
                case .imageStatus:
                    "\(quoted) is refused; allowed: 400…499 but 407, 408, 425 and 429"
                }
            let start = "\(whose): \(option.rawValue) \(place): \(what)"
            switch reason {
            // They say what is allowed where they are.
            case .original, .imageStatus: return start
            default: return "\(start); allowed: \(option.allowed), e.g. \(option.example)"
            }
        }
    }
}

/// Why a value of a site's setting was not taken, and where it stands.
package struct SiteRefusal: Error, Hashable {
    package enum Reason: Hashable, Sendable {
        case malformed
        /// A list where one value is needed, or a mapping where none is taken.
        case shape
        case repeated
        /// A list is longer than it may be.
        case tooMany
        /// The value of the field with this name, which may be a secret.
        case fieldValue
        /// No rule of how originals are named.
        case original(OriginalRuleFault)
        /// A status that says nothing of whether there is an image.
        case imageStatus
    }

    let text: String
    let line: Int?
    let reason: Reason
}
