package import HTTPRules
package import Telemetry

/// What is wrong with the settings of one site, or of images.
package struct SiteFault: Error, Hashable, CustomStringConvertible {
    package enum Problem: Hashable, Sendable {
        /// What stands before the settings is no host.
        case pattern
        /// It stands there twice.
        case duplicate
        /// A key that is no setting of a site; the nearest, if one is near.
        case unknownKey(nearest: SiteOption?)
        case missingOrigin
        /// The value of this setting is refused.
        case value(SiteOption, SiteOptionError.Reason)
    }

    /// The site as it was written; nil for images.
    package let site: String?
    /// The pattern of the origins whose images it is about; nil for all, or for a site.
    package private(set) var imageOrigin: String?
    package let source: SettingSource
    /// What was refused; empty if the fault is not in a text.
    package let text: String
    package let problem: Problem

    init(
        site: String?, imageOrigin: String? = nil, source: SettingSource, text: String,
        problem: Problem
    ) {
        self.site = site
        self.imageOrigin = imageOrigin
        self.source = source
        self.text = text
        self.problem = problem
    }

    /// The same of the images of an origin; of all if that is nil.
    func forImages(from origin: String?) -> SiteFault {
        var fault = self
        fault.imageOrigin = origin
        return fault
    }

    private var subject: String {
        if let site { return "site " + String(site.prefix(200)).singleLine }
        return "images"
            + (imageOrigin.map { " from " + String($0.prefix(200)).singleLine } ?? "")
    }

    /// One line, control bytes escaped.
    package var description: String {
        let place = "(from \(source.text(for: .site)))"
        let quoted = text.withoutUserinfo.quoted(limit: 80)
        switch problem {
        case .pattern where site == nil:
            return "images: \(quoted) \(place) is no pattern of origins; allowed: HOST[:PORT], "
                + "*.DOMAIN[:PORT] or *, e.g. *.example.com"
        case .duplicate: return "\(subject) \(place): \(quoted) is given twice"
        case .pattern:
            return "\(quoted) \(place) is no host of a site; allowed: *, HOST or HOST:PORT, "
                + "e.g. www.example.com"
        case .unknownKey(let nearest):
            let hint = nearest.map { "; perhaps \($0.rawValue)" } ?? ""
            guard site != nil else {
                let options =
                    imageOrigin == nil
                    ? ImageBlock.options.map(\.rawValue) + [ImageBlock.originsKey]
                    : ImageBlock.originOptions.map(\.rawValue)
                if text == SiteOption.setRequestFields.rawValue {
                    return "\(subject): \(quoted) \(place) would go to whatever origin a client "
                        + "names; allowed: below \(ImageBlock.originsKey), for those it is for"
                }
                let allowed = options.joined(separator: ", ")
                return "\(subject): \(quoted) \(place) is not a setting of images\(hint); "
                    + "allowed: \(allowed)"
            }
            return "\(subject): \(quoted) \(place) is not a setting of a site" + hint
        case .missingOrigin:
            return "\(subject) \(place): no origin is given; "
                + "allowed: \(SiteOption.origin.allowedFormat), e.g. \(SiteOption.origin.example)"
        case .value(let option, let reason):
            let what =
                switch reason {
                case .malformed: "\(quoted) is refused"
                case .wrongType: "a value of another shape is needed here"
                case .duplicate: "\(quoted) is given twice"
                case .tooMany: "\(quoted) is one too many"
                case .invalidFieldValue: "the value of \(quoted) is refused"
                case .invalidOriginalRule(let fault): "\(quoted) is refused \(fault)"
                case .unsafeContentCoding:
                    "\(quoted) is refused: codings would reach clients that ask for none; allowed: "
                        + "what removes it, and asks for identity, is remove-request-fields"
                case .unusableStatus:
                    "\(quoted) is refused; allowed: 400…499 but 407, 408, 425 and 429"
                }
            let start = "\(subject): \(option.rawValue) \(place): \(what)"
            switch reason {
            // They say what is allowed where they are.
            case .invalidOriginalRule, .unusableStatus, .unsafeContentCoding: return start
            default: return "\(start); allowed: \(option.allowedFormat), e.g. \(option.example)"
            }
        }
    }
}

/// Why a value of a site's setting was not taken, and where it stands.
package struct SiteOptionError: Error, Hashable {
    package enum Reason: Hashable, Sendable {
        case malformed
        /// A list where one value is needed, or a mapping where none is taken.
        case wrongType
        case duplicate
        /// A list is longer than it may be.
        case tooMany
        /// The value of the field with this name, which may be a secret.
        case invalidFieldValue
        /// No rule of how originals are named.
        case invalidOriginalRule(OriginalRuleFault)
        /// A coding for all who ask for an image, whatever they read.
        case unsafeContentCoding
        /// A status that says nothing of whether there is an image.
        case unusableStatus
    }

    let text: String
    let line: Int?
    let reason: Reason
}
