/** The part of React Native (0.81, or React Native Web) that this plugin uses. The host supplies the module. */

declare module "react-native" {
  import type { ComponentType, ReactNode } from "react";

  export interface Style {
    readonly alignItems?: "center" | "flex-start";
    readonly backgroundColor?: string;
    readonly borderColor?: string;
    readonly borderRadius?: number;
    readonly borderWidth?: number;
    readonly color?: string;
    readonly flex?: number;
    readonly flexDirection?: "row" | "column";
    readonly flexGrow?: number;
    readonly flexShrink?: number;
    readonly flexWrap?: "wrap";
    readonly fontSize?: number;
    readonly fontWeight?: "600";
    readonly gap?: number;
    readonly height?: number;
    readonly justifyContent?: "space-between";
    readonly minWidth?: number;
    readonly opacity?: number;
    readonly overflow?: "hidden";
    readonly padding?: number;
    readonly paddingHorizontal?: number;
    readonly paddingVertical?: number;
    readonly width?: `${number}%`;
  }
  interface Accessible {
    readonly accessibilityLabel?: string;
    readonly accessibilityRole?: "alert" | "button" | "header" | "progressbar";
    readonly "aria-busy"?: boolean;
    readonly "aria-disabled"?: boolean;
    readonly "aria-live"?: "polite";
    readonly "aria-valuemax"?: number;
    readonly "aria-valuemin"?: number;
    readonly "aria-valuenow"?: number;
    readonly children?: ReactNode;
    readonly style?: Style;
  }
  export const View: ComponentType<Accessible>;
  export const Text: ComponentType<Accessible & { readonly numberOfLines?: number; readonly selectable?: boolean }>;
  export const ScrollView: ComponentType<Accessible & { readonly contentContainerStyle?: Style }>;
  export const Pressable: ComponentType<Accessible & { readonly disabled?: boolean; readonly onPress: () => void }>;
  export const ActivityIndicator: ComponentType<Accessible & { readonly color: string }>;
}
