/** The small parts that both views are made of. */

import { ActivityIndicator, Pressable, Text, View } from "react-native";
import { type Look, stylesFor } from "./styles";

interface ButtonProps extends Look {
  readonly title: string;
  /** What a screen reader says. */
  readonly label: string;
  readonly kind?: "primary" | "plain" | "danger";
  readonly isBusy?: boolean;
  onPress(): void;
}

export function Button({ theme, layout, title, label, kind = "plain", isBusy = false, onPress }: ButtonProps) {
  const { accent, accentForeground, border, foreground, statusDanger, surface2 } = theme.colors;
  const color = { primary: accentForeground, plain: foreground, danger: statusDanger }[kind];
  return (
    <Pressable
      accessibilityRole="button"
      accessibilityLabel={label}
      aria-busy={isBusy}
      disabled={isBusy}
      onPress={onPress}
      style={{
        paddingVertical: layout.compact ? 12 : 8,
        paddingHorizontal: 14,
        borderWidth: 1,
        borderRadius: 6,
        borderColor: kind === "danger" ? statusDanger : border,
        backgroundColor: kind === "primary" ? accent : surface2,
        opacity: isBusy ? 0.6 : 1,
      }}
    >
      <Text style={{ color, fontSize: 14, fontWeight: "600" }}>{title}</Text>
    </Pressable>
  );
}

export function Loading({ theme, label }: Look & { readonly label: string }) {
  return <ActivityIndicator accessibilityLabel={label} color={theme.colors.accent} />;
}

/** A sentence that says what went wrong; a screen reader says it at once. */
export function Failure({ children, ...look }: Look & { readonly children: string }) {
  return (
    <View accessibilityRole="alert">
      <Text style={stylesFor(look).danger} selectable>
        {children}
      </Text>
    </View>
  );
}

export function ProgressBar({
  percent,
  label,
  color,
  ...look
}: Look & { percent: number; label: string; color: string }) {
  return (
    <View
      accessibilityRole="progressbar"
      accessibilityLabel={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
      style={stylesFor(look).track}
    >
      <View style={{ width: `${percent}%`, height: 6, backgroundColor: color }} />
    </View>
  );
}
