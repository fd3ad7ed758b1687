import Ground
import HTTPRules
import Telemetry

extension SiteBlock {
    /// Reads what `file` says of one site; nil, and at least one fault, if anything is wrong.
    init?(_ text: SiteText, in file: String, _ faults: inout [SiteFault]) {
        let site = text.pattern.text
        func fault(_ problem: SiteFault.Problem, _ text: String, _ line: Int?) -> SiteFault {
            SiteFault(
                site: site, source: .file(name: file, line: line), text: text, problem: problem)
        }
        let before = faults.count
        let pattern = SitePattern(site)
        if pattern == nil { faults.append(fault(.pattern, site, text.pattern.line)) }
        var origin: BaseURL?
        var isOriginGiven = false
        var settings = SiteSettings()
        var lines: [Line] = []
        for (key, value) in text.options {
            guard let option = SiteOption(rawValue: key.text) else {
                let nearest = SiteOption.nearest(to: key.text)
                faults.append(fault(.unknownKey(nearest: nearest), key.text, key.line))
                continue
            }
            do throws(SiteRefusal) {
                if option == .origin {
                    isOriginGiven = true
                    origin = try Self.origin(value)
                } else {
                    try option.apply(value, to: &settings)
                    lines.append(Line(option: option, yaml: value.yaml(isSecret: option.isSecret)))
                }
            } catch {
                faults.append(
                    fault(.value(option, error.reason), error.text, error.line ?? key.line))
            }
        }
        if !isOriginGiven { faults.append(fault(.noOrigin, "", text.pattern.line)) }
        guard faults.count == before, let pattern, let origin else { return nil }
        let order = SiteOption.allCases
        self.init(
            pattern: pattern, origin: origin, settings: settings,
            lines: order.flatMap { option in lines.filter { $0.option == option } },
            source: .file(name: file, line: text.pattern.line))
    }

    private static func origin(_ value: SiteText.Value) throws(SiteRefusal) -> BaseURL {
        guard case .scalar(let text) = value else { throw value.ofOtherShape }
        do throws(BaseURL.Problem) {
            return try BaseURL(text.text)
        } catch {
            throw text.refused()
        }
    }
}
