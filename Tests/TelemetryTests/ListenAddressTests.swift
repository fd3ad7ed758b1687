import Telemetry
import Testing

@Suite("Listen addresses")
struct ListenAddressTests {
    @Test(
        "A listen address is an IP address and a port",
        arguments: [
            ("127.0.0.1:8080", "127.0.0.1:8080"), ("0.0.0.0:0", "0.0.0.0:0"),
            ("[::]:65535", "[::]:65535"), ("localhost:80", "127.0.0.1:80"),
        ])
    func listenAddressesAreRead(text: String, shown: String) {
        #expect(ListenAddress(text)?.description == shown)
    }

    @Test(
        "Other text is refused",
        arguments: [
            "", "8080", ":8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:+80",
            "::1:80", "[::1]", "[::1]80", "[127.0.0.1]:80", "[localhost]:80", "example.com:80",
            "[::1:80", "127.0.0.1:80:80", "*:80",
        ])
    func otherTextIsNoListenAddress(text: String) {
        #expect(ListenAddress(text) == nil)
    }
}
