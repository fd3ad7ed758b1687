import Ground
import HTTPRules
import Telemetry

extension SiteBlock {
    /// Reads what `file` says of one site; nil, and at least one fault, if anything is wrong.
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
            text.options, of: site, in: file, among: SiteOption.allCases, from: SiteSettings(),
            &faults)
        if !text.options.contains(where: { $0.key.text == SiteOption.origin.rawValue }) {
            faults.append(fault(.missingOrigin, ""))
        }
        guard let read, let pattern, let origin = read.origin else { return nil }
        self.init(
            pattern: pattern, origin: origin, settings: read.settings, shownOptions: read.lines,
            source: .file(name: file, line: line))
    }

    /// What settings come to.
    typealias ParsedSettings = (origin: BaseURL?, settings: SiteSettings, lines: [Line])

    /// Reads settings that are `among` those which a site may have, or images have if it is nil,
    /// where others are as in `defaults`; nil, and at least one fault, if anything is wrong.
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
            guard let option = SiteOption(rawValue: key.text), options.contains(option) else {
                let nearest = SiteOption.nearest(to: key.text, among: options)
                faults.append(fault(.unknownKey(nearest: nearest), key.text, key.line))
                continue
            }
            do throws(SiteOptionError) {
                if option == .origin {
                    read.origin = try Self.origin(value)
                } else {
                    try option.apply(value, to: &read.settings)
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
        read.lines = SiteOption.allCases.flatMap { option in
            lines.filter { $0.option == option }
        }
        return read
    }

    private static func origin(_ value: RawSiteBlock.Value) throws(SiteOptionError) -> BaseURL {
        guard case .scalar(let text) = value else { throw value.wrongTypeError }
        do throws(BaseURL.Problem) {
            return try BaseURL(text.text)
        } catch {
            throw text.error()
        }
    }
}
