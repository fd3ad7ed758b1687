import HTTPRules
import Telemetry

/// What a file says of images that are asked for by their URLs, with the keys of a site.
package struct ImageBlock: Hashable, Sendable {
    var settings = SiteSettings.images
    /// In the order of ``SiteOption``.
    var lines: [SiteBlock.Line] = []

    /// The keys that mean something for images.
    package static let options: [SiteOption] = [.defaultTTL, .ttlLimit, .negativeTTL, .grace]

    /// The defaults, for a file that says nothing.
    init() {}

    /// Reads what `file` says; nil, and at least one fault, if anything is wrong.
    init?(_ texts: [SiteText.Option], in file: String, _ faults: inout [SiteFault]) {
        let read = SiteBlock.read(
            texts, of: nil, in: file, among: Self.options, from: .images, &faults)
        guard let read else { return nil }
        // An answer that is none of these says nothing of whether there is an image.
        let wrong = read.settings.negativeTTLs.first {
            !(400...499 ~= $0.status) || $0.status == 407 || StatusRules.isTransient($0.status)
        }
        if let wrong {
            let line = texts.first { $0.key.text == SiteOption.negativeTTL.rawValue }?.key.line
            faults.append(
                SiteFault(
                    site: nil, source: .file(name: file, line: line), text: "\(wrong.status)",
                    problem: .value(.negativeTTL, .imageStatus)))
            return nil
        }
        (settings, lines) = (read.settings, read.lines)
    }

    /// The operator has said it.
    func isGiven(_ option: SiteOption) -> Bool { lines.contains { $0.option == option } }

    /// All that was said, in one line; empty if that is nothing.
    var text: String {
        lines.isEmpty
            ? ""
            : (["images"] + lines.map { "\($0.option.rawValue): \($0.yaml)" })
                .joined(separator: ", ")
    }
}
