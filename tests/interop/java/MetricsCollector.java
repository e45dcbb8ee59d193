// A broker's metrics reporter that collects the metrics of clients, and writes what it gets to a file, a line for a
// metric: terminating or not, the labels of the client, name, kind, value and the attributes of the point.

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.io.opentelemetry.proto.common.v1.KeyValue;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Metric;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.NumberDataPoint;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ResourceMetrics;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ScopeMetrics;

public class MetricsCollector implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private final Path file = Path.of(System.getProperty("collected"));

    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    public synchronized void exportMetrics(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        StringBuilder lines = new StringBuilder();
        String sender = payload.clientInstanceId() + "\t" + payload.isTerminating();
        try {
            for (ResourceMetrics resource : MetricsData.parseFrom(payload.data()).getResourceMetricsList()) {
                String labels = textOf(resource.getResource().getAttributesList());
                for (ScopeMetrics scope : resource.getScopeMetricsList()) {
                    for (Metric metric : scope.getMetricsList()) {
                        List<NumberDataPoint> points = metric.hasSum()
                            ? metric.getSum().getDataPointsList() : metric.getGauge().getDataPointsList();
                        String kind = metric.hasSum() ? metric.getSum().getAggregationTemporality().toString() : "GAUGE";
                        for (NumberDataPoint point : points) {
                            lines.append(String.join("\t", sender, labels, metric.getName(), kind,
                                String.valueOf(point.getAsDouble()), textOf(point.getAttributesList()))).append("\n");
                        }
                    }
                }
            }
            Files.writeString(file, lines, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new RuntimeException(error);
        }
    }

    private static String textOf(List<KeyValue> attributes) {
        Map<String, String> sorted = new TreeMap<>();
        for (KeyValue each : attributes) {
            sorted.put(each.getKey(), each.getValue().getStringValue());
        }
        return sorted.toString();
    }

    public void configure(Map<String, ?> configs) {}

    public void init(List<KafkaMetric> metrics) {}

    public void metricChange(KafkaMetric metric) {}

    public void metricRemoval(KafkaMetric metric) {}

    public void close() {}
}
