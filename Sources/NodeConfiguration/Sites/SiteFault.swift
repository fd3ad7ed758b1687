package import HTTPRules
package import Telemetry

/// A fault in the settings of a site or of images.
package struct SiteFault: Error, Hashable, CustomStringConvertible {
    /// The kind of fault.
    package enum Problem: Hashable, Sendable {
        /// The key of the block is not a host or, for images, not a pattern of origins.
        case pattern
        /// The key of the block is given twice.
        case duplicate
        /// A key is not an option of its block; `nearest` is one with a similar name.
        case unknownKey(nearest: SiteOption?)
        /// The site has no origin.
        case missingOrigin
        /// The value of an option is invalid.
        case value(SiteOption, SiteOptionError.Reason)
    }

    /// The site as written; `nil` for images.
    package let site: String?
    /// The pattern of the origins whose images the fault is about; `nil` for all images, and for a
    /// site.
    package private(set) var imageOrigin: String?
    /// The file and line of the fault.
    package let source: SettingSource
    /// The invalid text; empty if the fault is not in a text.
    package let text: String
    /// The kind of fault.
    package let problem: Problem

    /// Creates a fault from its parts.
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

    /// Returns this fault as one of the images from `origin`, or of all images if that is `nil`.
    func forImages(from origin: String?) -> SiteFault {
        var fault = self
        fault.imageOrigin = origin
        return fault
    }

    /// The name of the block at fault.
    private var subject: String {
        if let site { return "site " + String(site.prefix(200)).singleLine }
        return "images"
            + (imageOrigin.map { " from " + String($0.prefix(200)).singleLine } ?? "")
    }

    /// The fault in one line, with control bytes escaped.
    package var description: String {
        let place = "(from \(source.text))"
        let quoted = text.withoutUserinfo.quoted(limit: 80)
        switch problem {
        case .pattern where site == nil:
            return "images: \(quoted) \(place) is not an origin pattern; allowed: HOST[:PORT], "
                + "*.DOMAIN[:PORT] or *, e.g. *.example.com"
        case .duplicate: return "\(subject) \(place): \(quoted) is given twice"
        case .pattern:
            return "\(quoted) \(place) is not a site's host; allowed: *, HOST or HOST:PORT, "
                + "e.g. www.example.com"
        case .unknownKey(let nearest):
            let hint = nearest.map { "; perhaps \($0.name)" } ?? ""
            guard site != nil else {
                let options =
                    imageOrigin == nil
                    ? SiteOption.options(of: .images).map(\.name) + [ImageBlock.originsKey]
                    : SiteOption.options(of: .imageOrigins).map(\.name)
                if text == SiteOption.all.setRequestFields.name {
                    return "\(subject): \(quoted) \(place) would be sent to any origin a client "
                        + "names; allowed: below \(ImageBlock.originsKey), for named origins"
                }
                let allowed = options.joined(separator: ", ")
                return "\(subject): \(quoted) \(place) is not a setting of images\(hint); "
                    + "allowed: \(allowed)"
            }
            return "\(subject): \(quoted) \(place) is not a setting of a site" + hint
        case .missingOrigin:
            return "\(subject) \(place): no origin is given; "
                + "allowed: \(SiteOption.all.origin.allowed), "
                + "e.g. \(SiteOption.all.origin.example)"
        case .value(let option, let reason):
            let what =
                switch reason {
                case .malformed: "\(quoted) is invalid"
                case .wrongType: "the value has the wrong type"
                case .duplicate: "\(quoted) is given twice"
                case .tooMany: "\(quoted) exceeds the maximum number"
                case .invalidFieldValue: "the value of \(quoted) is invalid"
                case .invalidOriginalRule(let fault): "\(quoted) is invalid \(fault)"
                case .unsafeContentCoding:
                    "\(quoted) is invalid: clients that accept no coding would receive one; to "
                        + "request responses without coding, list it in remove-request-fields"
                case .unusableStatus:
                    "\(quoted) is invalid; allowed: 400…499 except 407, 408, 425 and 429"
                }
            let start = "\(subject): \(option.name) \(place): \(what)"
            switch reason {
            // These reasons contain the allowed values.
            case .invalidOriginalRule, .unusableStatus, .unsafeContentCoding: return start
            default: return "\(start); allowed: \(option.allowed), e.g. \(option.example)"
            }
        }
    }
}

/// An error in the value of a site's option, with its position.
package struct SiteOptionError: Error, Hashable {
    /// The reason why a value is invalid.
    package enum Reason: Hashable, Sendable {
        case malformed
        /// A list where one value is needed, or a mapping where none is accepted.
        case wrongType
        case duplicate
        /// The list is too long.
        case tooMany
        /// The value of the field with this name is invalid; it is not shown, because it may be a
        /// secret.
        case invalidFieldValue
        /// The text is not a rule for the originals of a URL.
        case invalidOriginalRule(OriginalRuleFault)
        /// The content coding would reach clients that do not accept it.
        case unsafeContentCoding
        /// The status does not say whether there is an image.
        case unusableStatus
    }

    /// The invalid text; empty if the shape is wrong.
    let text: String
    /// The line in the file, from 1; `nil` if unknown.
    let line: Int?
    /// The reason.
    let reason: Reason
}
